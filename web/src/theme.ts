// Light, dark, or as the system has it; remembered by the browser.
import { redraw } from "./view";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const kName = "comfyd-theme";

export function theme(): Theme {
  const kept = localStorage.getItem(kName);
  return themes.find((one) => one === kept) ?? "system";
}

export function nextTheme(): void {
  localStorage.setItem(kName, themes[(themes.indexOf(theme()) + 1) % themes.length] ?? "system");
  apply();
  redraw();
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
}
apply();

// Light, dark, or as the system has it; remembered by the browser.
import { redraw } from "./view";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const kName = "comfyd-theme";

let chosen: Theme = themes.find((one) => one === remembered()) ?? "system";
apply();

export const theme = (): Theme => chosen;

export function nextTheme(): void {
  chosen = themes[(themes.indexOf(chosen) + 1) % themes.length] ?? "system";
  apply();
  redraw();
  try {
    localStorage.setItem(kName, chosen);
  } catch {
    // A browser that keeps nothing has it until the page is left.
  }
}

function remembered(): string | null {
  try {
    return localStorage.getItem(kName);
  } catch {
    return null;
  }
}

function apply(): void {
  document.documentElement.dataset.theme = chosen;
}

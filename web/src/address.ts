// Where the page is: all that it shows follows from the address, so that a copied one shows the same.

export interface Place {
  path: string; // "/jobs/…", without "/ui"
  query: URLSearchParams;
}

const kBase = "/ui";

export function here(): Place {
  const path = location.pathname.slice(kBase.length).replace(/\/+$/, "");
  return { path: path || "/", query: new URLSearchParams(location.search) };
}

export function to(path: string, query: Record<string, string | undefined> = {}): string {
  const set = Object.entries(query).filter((one): one is [string, string] => !!one[1]);
  const text = new URLSearchParams(set).toString();
  return kBase + path + (text ? `?${text}` : "");
}

// The same place with another query; what is undefined or empty goes.
export function changed(changes: Record<string, string | undefined>): string {
  const { path, query } = here();
  return to(path, { ...Object.fromEntries(query), ...changes });
}

let moved: () => void = () => {};

export function go(address: string): void {
  history.pushState(null, "", address);
  moved();
}

// Links within the dashboard change what is shown, without loading the page again.
export function watchMoves(whenMoved: () => void): void {
  moved = whenMoved;
  addEventListener("popstate", moved);
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || !link.pathname.startsWith(`${kBase}/`)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

// A page is made when somebody comes to its address, and stopped when they leave it. Another query at the same path is
// another page.
import type { Place } from "./address";
import type { Content } from "./view";

export interface Page {
  title: string;
  view: () => Content;
  stop: () => void;
}

export type MakePage = (place: Place, ...parts: string[]) => Page;

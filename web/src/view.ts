// What is to be seen is described by functions, as elements within elements; draw() makes the document like the
// description, and touches only what differs from the one before. There is no state in here: a page keeps its own and
// calls redraw() when it has changed.

export type Content = Drawn | string | number | null | undefined | false | Content[];

export interface Attributes {
  key?: string; // tells the elements of a list apart
  class?: string | undefined;
  created?: (element: HTMLElement) => void; // called once, when the element is in the document
  onclick?: (event: MouseEvent) => void;
  onsubmit?: (event: SubmitEvent) => void;
  oninput?: (event: Event & { target: HTMLInputElement }) => void;
  onchange?: (event: Event & { target: HTMLInputElement | HTMLSelectElement }) => void;
  [name: string]: unknown;
}

interface Drawn {
  tag: string; // "": a text
  text: string;
  key: string | undefined;
  attributes: Attributes;
  children: Drawn[];
  node?: Element | Text;
}

declare global {
  namespace JSX {
    type Element = Content;
    type ElementType = string | ((properties: never) => Content);
    interface IntrinsicElements {
      [tag: string]: Attributes;
    }
    interface IntrinsicAttributes {
      key?: string;
    }
    interface ElementChildrenAttribute {
      children: unknown;
    }
  }
}

type Component = (properties: Attributes & { children: Content }) => Content;

// What JSX becomes. A component is called at once: it is but a name for what it makes.
export function h(what: string | Component, attributes: Attributes | null, ...children: Content[]): Content {
  if (typeof what !== "string") {
    const made = what({ ...attributes, children });
    if (attributes?.key !== undefined && isDrawn(made)) made.key = attributes.key;
    return made;
  }
  return { tag: what, text: "", key: attributes?.key, attributes: attributes ?? {}, children: children.flatMap(flat) };
}

export const Fragment: Component = ({ children }) => children;

let root: Element | undefined;
let describe: () => Content = () => null;
let drawn: Drawn[] = [];
let isDue = false;
const born: (() => void)[] = []; // what waits for its element to be in the document

// From now on `element` shows what `content` says at each redraw().
export function show(element: Element, content: () => Content): void {
  root = element;
  describe = content;
  redraw();
}

// At the next frame; a page that nobody looks at has none.
export function redraw(): void {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const next = flat(describe());
    place(root!, drawn, next);
    drawn = next;
    for (const one of born.splice(0)) one();
  });
}

function isDrawn(content: Content): content is Drawn {
  return typeof content === "object" && content !== null && !Array.isArray(content);
}

// What is not there keeps its place as an empty text, so that those behind it stay what they are.
function flat(content: Content): Drawn[] {
  if (Array.isArray(content)) return content.flatMap(flat);
  if (isDrawn(content)) return [content];
  const text = content === null || content === undefined || content === false ? "" : String(content);
  return [{ tag: "", text, key: undefined, attributes: {}, children: [] }];
}

// Elements with a key are found again by it, the others by their place.
function place(parent: Element, before: Drawn[], next: Drawn[]): void {
  const named = new Map(before.filter((one) => one.key !== undefined).map((one) => [one.key, one]));
  const others = before.filter((one) => one.key === undefined);
  const kept = new Set<Drawn>();
  let index = 0;
  for (const one of next) {
    const same = one.key === undefined ? others[index++] : named.get(one.key);
    if (same && same.tag === one.tag && !kept.has(same)) {
      kept.add(same);
      change(same, one);
    } else {
      create(one);
    }
  }
  for (const one of before) if (!kept.has(one)) one.node?.remove();
  let at: Node | null = parent.firstChild;
  for (const one of next) {
    if (one.node === at) at = at!.nextSibling;
    else parent.insertBefore(one.node!, at);
  }
}

const drawings = new Set(["svg", "path", "circle"]);

function create(one: Drawn): void {
  if (!one.tag) {
    one.node = document.createTextNode(one.text);
    return;
  }
  const element = drawings.has(one.tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", one.tag)
    : document.createElement(one.tag);
  one.node = element;
  place(element, [], one.children);
  for (const [name, value] of Object.entries(one.attributes)) set(element, name, value);
  const { created } = one.attributes;
  if (created) born.push(() => created(element as HTMLElement));
}

function change(before: Drawn, next: Drawn): void {
  next.node = before.node;
  if (!next.tag) {
    if (before.text !== next.text) (next.node as Text).data = next.text;
    return;
  }
  const element = next.node as Element;
  place(element, before.children, next.children);
  for (const name of Object.keys(before.attributes)) {
    if (!(name in next.attributes)) set(element, name, undefined);
  }
  for (const [name, value] of Object.entries(next.attributes)) {
    // What is chosen is one of the options, which may have come anew; what is typed stays until it is described otherwise.
    const isChosen = name === "value" && element instanceof HTMLSelectElement;
    if (isChosen || value !== before.attributes[name]) set(element, name, value);
  }
}

function set(element: Element, name: string, value: unknown): void {
  if (name === "key" || name === "created") return;
  if (name.startsWith("on") || name === "checked") {
    Object.assign(element, { [name]: value ?? null });
  } else if (name === "value" && "value" in element) {
    if (element.value !== value) element.value = value ?? ""; // setting it moves the cursor
  } else if (value === undefined || value === null || value === false) {
    element.removeAttribute(name);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

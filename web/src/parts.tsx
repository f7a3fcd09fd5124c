// What several pages are made of.
import type { Failure } from "./api";
import { to } from "./address";
import { ago, exact, kUnknown, plural, short } from "./format";
import type { Live } from "./live";
import type { Still } from "./still";
import { h, type Content } from "./view";

// A state has a sign, a word and a colour, and is understood without the colour.
type Tone = "good" | "bad" | "busy" | "calm" | "warn";
const signs: Record<Tone, string> = {
  good: "M3.5 8.5l3 3 6-7",
  bad: "M4 4l8 8M12 4l-8 8",
  busy: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5",
  calm: "M8 8m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
  warn: "M8 3v6M8 12.2v.3",
};
const states: Record<string, [Tone, string]> = {
  queued: ["calm", "waiting"],
  processing: ["busy", "running"],
  completed: ["good", "done"],
  failed: ["bad", "failed"],
  cancelled: ["calm", "cancelled"],
  pending: ["busy", "waiting"],
  delivered: ["good", "delivered"],
  dead: ["bad", "given up"],
  starting: ["busy", "starting"],
  idle: ["good", "ready"],
  running: ["busy", "running"],
  draining: ["warn", "draining"],
  stopped: ["warn", "drained"],
  down: ["bad", "down"],
  error: ["bad", "down"],
  enabled: ["good", "enabled"],
  disabled: ["warn", "disabled"],
};

export function State({ of }: { of: string }): Content {
  const [tone, word] = states[of] ?? ["calm", of];
  return (
    <span class={`state ${tone}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true"><path d={signs[tone]} /></svg>
      {word}
    </span>
  );
}

export function When({ at }: { at: string | null }): Content {
  return at ? <time datetime={at} title={exact(at)}>{ago(at)}</time> : kUnknown;
}

export function JobLink({ id, name }: { id: string; name?: string | undefined }): Content {
  return <a class={name ? "" : "id"} href={to(`/jobs/${id}`)} title={id}>{name ?? short(id)}</a>;
}

export function Heading({ title, children }: { title: Content; children?: Content }): Content {
  return (
    <header class="heading">
      <h1 tabindex="-1">{title}</h1>
      <div class="actions">{children}</div>
    </header>
  );
}

// Name and value, side by side.
export function Facts({ of }: { of: [string, Content][] }): Content {
  return <dl class="facts">{of.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

// Of a table whose rows are cards on a small screen: there each cell says what it is.
export function Cell({ of, children, ...rest }: { of: string; children?: Content; class?: string }): Content {
  return <td data-of={of} {...rest}>{isEmpty(children) ? null : <div>{children}</div>}</td>;
}

function isEmpty(content: Content): boolean {
  return Array.isArray(content) ? content.every(isEmpty) : content === null || content === undefined || content === false || content === "";
}

export function Empty({ children }: { children?: Content }): Content {
  return <p class="empty">{children}</p>;
}

// What waits to be shown.
export function Newer<T, Page>({ than, word, list }: { than: Still<T>; word: string; list: Live<Page> }): Content {
  const show = (): void => {
    than.renew();
    void list.again();
  };
  return <span role="status">{than.newer > 0 && <button class="news" onclick={show}>↑ {plural(than.newer, `new ${word}`)}</button>}</span>;
}

// What the server refused, in its words, and what would help.
export function Problem({ failure }: { failure: Failure }): Content {
  const titles: Record<number, string> = { 0: "No connection", 401: "Not signed in", 403: "Not yours to see", 404: "Not there" };
  const hints: Record<number, string> = {
    0: "It is tried again by itself.",
    403: "Sign in with a key that may, or ask whoever runs this server for one.",
    404: "It may have been removed when its time was over.",
  };
  return (
    <div class="problem" role="alert">
      <strong>{titles[failure.status] ?? "That did not work"}</strong>
      <p>{failure.message}</p>
      {hints[failure.status] && <p class="soft">{hints[failure.status]}</p>}
    </div>
  );
}

// What a reading has, or why it has nothing.
export function Loaded<T>({ from, show }: { from: Live<T>; show: (value: T) => Content }): Content {
  if (from.value !== undefined) return show(from.value);
  return from.failure ? <Problem failure={from.failure} /> : <p class="soft" role="status">Reading…</p>;
}

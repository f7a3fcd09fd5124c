// What is said to people beside the page: questions before something is done, and a sentence about what came of it.
import type { Answer } from "./api";
import { count } from "./format";
import { lost } from "./session";
import { h, redraw, type Content } from "./view";

interface Question {
  title: string;
  text: Content;
  action: string;
  isGrave?: boolean; // it cannot be undone
  number?: number; // of what it is done to: large ones must be typed
}

const kTypedAbove = 1000;
const kSaidForMs = 8000;

let question: (Question & { answered: (yes: boolean) => void; from: Element | null }) | undefined;
let typed = "";
let said: { text: string; isBad: boolean } | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export function confirm(asked: Question): Promise<boolean> {
  typed = "";
  return new Promise((resolve) => {
    question = { ...asked, answered: resolve, from: document.activeElement };
    redraw();
  });
}

export function say(text: string, isBad = false): void {
  said = { text, isBad };
  clearTimeout(timer);
  timer = setTimeout(() => {
    said = undefined;
    redraw();
  }, kSaidForMs);
  redraw();
}

// Says what came of an action; true: it was done.
export function tell<T>(answer: Answer<T>, words: string | ((value: T) => string)): boolean {
  if (answer.failure) {
    if (answer.failure.status === 401) lost();
    say(answer.failure.message, true);
    return false;
  }
  say(typeof words === "string" ? words : words(answer.value as T));
  return true;
}

function close(yes: boolean): void {
  const asked = question;
  question = undefined;
  asked?.answered(yes);
  redraw();
  requestAnimationFrame(() => asked?.from instanceof HTMLElement && asked.from.focus());
}

export function Talk(): Content {
  return (
    <div>
      <div class="said" role="status" aria-live="polite">{said && <p class={said.isBad ? "bad" : ""}>{said.text}</p>}</div>
      {question && <Dialog {...question} />}
    </div>
  );
}

function Dialog({ title, text, action, isGrave, number = 0 }: Question): Content {
  const mustType = isGrave && number > kTypedAbove;
  return (
    <dialog
      aria-labelledby="question"
      created={(element) => (element as HTMLDialogElement).showModal()}
      onclose={() => close(false)}
    >
      <form method="dialog" onsubmit={(event) => {
        event.preventDefault();
        close(true);
      }}>
        <h2 id="question">{title}</h2>
        <p>{text}</p>
        {mustType && (
          <label>
            Type {count(number)} to go on
            <input inputmode="numeric" value={typed} oninput={(event) => {
              typed = event.target.value;
              redraw();
            }} />
          </label>
        )}
        <div class="actions">
          <button type="button" onclick={() => close(false)}>Leave it</button>
          <button class={isGrave ? "grave" : "main"} disabled={mustType && typed.replace(/\D/g, "") !== String(number)}>
            {action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

// What is read again and again while somebody looks: at once, then every so often, and not at all while the page is
// hidden. What was read stays there when a later reading fails.
import type { Answer, Failure } from "./api";
import { lost } from "./session";
import { redraw } from "./view";

export class Live<T> {
  value: T | undefined;
  failure: Failure | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  private turn = 0;

  // `every` milliseconds; 0: once.
  constructor(
    private readonly read: () => Promise<Answer<T>>,
    private readonly every: number | ((value: T | undefined) => number),
    private readonly taken: (value: T) => void = () => {},
  ) {
    document.addEventListener("visibilitychange", this.seen);
    void this.again();
  }

  // Now, and then as usual.
  again = async (): Promise<void> => {
    clearTimeout(this.timer);
    const turn = ++this.turn;
    const { value, failure } = await this.read();
    if (this.isStopped || turn !== this.turn) return;
    this.failure = failure;
    if (!failure) {
      this.value = value;
      this.taken(value as T);
    }
    if (failure?.status === 401) lost();
    redraw();
    this.wait();
  };

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.seen);
  }

  private wait(): void {
    const every = typeof this.every === "function" ? this.every(this.value) : this.every;
    // What may not be read will not become readable by asking.
    const isRefused = this.failure && [401, 403, 404].includes(this.failure.status);
    if (every > 0 && !isRefused && !document.hidden) this.timer = setTimeout(this.again, every);
  }

  private seen = (): void => {
    clearTimeout(this.timer);
    if (!document.hidden && (typeof this.every === "function" ? this.every(this.value) : this.every) > 0) void this.again();
  };
}

// A list that is read again and again and stays still under the pointer: rows change in place, new ones wait until they
// are wanted, and those that are not listed any more stay, marked, until then.

export class Still<T> {
  rows: T[] = [];
  newer = 0; // how many wait
  gone = new Set<string>();
  private isFresh = true;

  constructor(private readonly idOf: (row: T) => string) {}

  // The next reading is shown as it is.
  renew(): void {
    this.isFresh = true;
  }

  // `isCut`: there are more than were read.
  take(read: T[], isCut: boolean): void {
    if (this.isFresh || this.rows.length === 0) {
      this.rows = read;
      this.newer = 0;
      this.gone.clear();
      this.isFresh = false;
      return;
    }
    const ids = read.map(this.idOf);
    const shown = this.rows.map(this.idOf);
    const [isRead, isShown] = [new Set(ids), new Set(shown)];
    // What is behind the last one that is in both was pushed off the page, or has come onto it.
    const lastRead = isCut ? ids.findLastIndex((id) => isShown.has(id)) : ids.length;
    const lastShown = isCut ? shown.findLastIndex((id) => isRead.has(id)) : shown.length;
    this.newer = ids.slice(0, lastRead < 0 ? ids.length : lastRead).filter((id) => !isShown.has(id)).length;
    this.gone = new Set(shown.slice(0, lastShown < 0 ? 0 : lastShown).filter((id) => !isRead.has(id)));
    const latest = new Map(read.map((row) => [this.idOf(row), row]));
    this.rows = this.rows.map((row) => latest.get(this.idOf(row)) ?? row);
  }
}

/** Collects errors that would have ended the process without the listeners of the test runner. */
export class Faults implements Disposable {
  readonly seen: string[] = [];
  readonly #note = (error: unknown) => void this.seen.push(error instanceof Error ? (error.stack ?? error.message) : String(error));

  constructor() {
    process.on("uncaughtException", this.#note);
    process.on("unhandledRejection", this.#note);
  }

  [Symbol.dispose](): void {
    process.off("uncaughtException", this.#note);
    process.off("unhandledRejection", this.#note);
  }
}

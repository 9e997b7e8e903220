/** Longest line that is kept in memory. Longer ones are cut into several. */
const MAX_LINE_LENGTH = 16 * 1024;

/** Splits output into lines, of which it keeps one at most. Bytes that are no UTF-8 are replaced. */
export class Lines {
  readonly #onLine: (line: string) => void;
  readonly #decoder = new TextDecoder();
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(bytes: Uint8Array): void {
    this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Passes on what is left of an unfinished line. */
  end(): void {
    this.#take(this.#decoder.decode());
    if (this.#rest !== "") this.#onLine(this.#rest);
    this.#rest = "";
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split("\n");
    this.#rest = parts.pop() ?? "";
    for (const line of parts) this.#pass(line);
    while (this.#rest.length > MAX_LINE_LENGTH) {
      this.#onLine(this.#rest.slice(0, MAX_LINE_LENGTH));
      this.#rest = this.#rest.slice(MAX_LINE_LENGTH);
    }
  }

  #pass(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += MAX_LINE_LENGTH) this.#onLine(line.slice(at, at + MAX_LINE_LENGTH));
  }
}

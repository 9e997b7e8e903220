/** Counts the requests and upgraded connections that each key has at a time. A limit of 0 is none. */
export class OpenRequests {
  readonly limit: number;
  readonly #open = new Map<string, number>();

  constructor(limit: number) {
    this.limit = limit;
  }

  isFull(key: string): boolean {
    return this.limit !== 0 && (this.#open.get(key) ?? 0) >= this.limit;
  }

  /** Counts a request until the signal is aborted, which is when its client has gone or has the whole response. */
  add(key: string, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    signal.addEventListener("abort", () => this.#giveBack(key), { once: true });
  }

  /** The number of keys with open requests. */
  get size(): number {
    return this.#open.size;
  }

  #giveBack(key: string): void {
    const left = (this.#open.get(key) ?? 0) - 1;
    if (left > 0) this.#open.set(key, left);
    else this.#open.delete(key);
  }
}

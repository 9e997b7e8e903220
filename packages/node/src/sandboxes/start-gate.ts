import { PlatformError } from "@skerry/base";

/** At most `limit` starts at once and `maxWaiting` behind them: what is over is refused at once instead of slowing all down. */
export class StartGate {
  readonly #limit: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: { limit: number; maxWaiting: number }) {
    this.#limit = options.limit;
    this.#maxWaiting = options.maxWaiting;
  }

  get isIdle(): boolean {
    return this.#running === 0;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) {
      if (this.#waiting.length >= this.#maxWaiting) {
        throw new PlatformError("capacity_unavailable", `${this.#waiting.length} sandboxes wait to be started already`, {
          publicMessage: "too many sandboxes are being started on this machine at once: try again in a moment",
        });
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      // A waiting one takes over this place; the count stays.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}

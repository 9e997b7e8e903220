import { PlatformError } from "@skerry/base";
import { AdaptiveLimit } from "./adaptive-limit.ts";

interface Waiting {
  readonly go: () => void;
  readonly timer: NodeJS.Timeout;
}

export interface StartGateOptions {
  /** How many may run at once, between these; in between it is found out what gets most done. */
  readonly limit: { readonly min: number; readonly max: number };
  readonly maxWaiting: number;
  /** Whoever has waited this long is refused: later the caller has given up anyway. */
  readonly maxWaitMs: number;
}

/** Starts run a few at once, the rest in order behind them: what is over is refused instead of slowing all down. */
export class StartGate {
  readonly #options: StartGateOptions;
  readonly #limit: AdaptiveLimit;
  readonly #waiting = new Set<Waiting>();
  #running = 0;

  constructor(options: StartGateOptions) {
    this.#options = options;
    this.#limit = new AdaptiveLimit(options.limit);
  }

  get isIdle(): boolean {
    return this.#running === 0;
  }

  /** Throws PlatformError("capacity_unavailable") when it is not this one's turn in time. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit.value) await this.#wait();
    else this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#limit.done({ isSaturated: this.#waiting.size > 0, now: performance.now() });
      this.#admit();
    }
  }

  #wait(): Promise<void> {
    if (this.#waiting.size >= this.#options.maxWaiting) return Promise.reject(tooMany(`${this.#waiting.size} starts wait already`));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting);
        reject(tooMany(`not its turn in ${this.#options.maxWaitMs} ms`));
      }, this.#options.maxWaitMs);
      const waiting: Waiting = { go: resolve, timer };
      this.#waiting.add(waiting);
    });
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      if (this.#running >= this.#limit.value) return;
      // Its place is taken here, not when it wakes up: nobody slips in between.
      this.#running += 1;
      this.#waiting.delete(waiting);
      clearTimeout(waiting.timer);
      waiting.go();
    }
  }
}

function tooMany(why: string): PlatformError {
  return new PlatformError("capacity_unavailable", why, {
    publicMessage: "too many sandboxes are being started on this machine at once: try again in a moment",
  });
}

import { PlatformError } from "@skerry/base";
import { AdaptiveLimit } from "./adaptive-limit.ts";

interface Waiting {
  readonly go: () => void;
  readonly timer: NodeJS.Timeout;
}

export interface StartGateOptions {
  /** Bounds of the number of parallel starts. The gate finds the best number between them. */
  readonly limit: { readonly min: number; readonly max: number };
  readonly maxWaiting: number;
  /** Longest wait of a start before it is refused. Callers give up after that anyway. */
  readonly maxWaitMs: number;
}

/** Limits the parallel starts. The others wait in order. Starts that would wait too long are refused, because they would slow down all others. */
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

  /** Runs a start in its turn. Throws PlatformError("capacity_unavailable") when the turn does not come in time. */
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
      // The place is taken here and not when the waiting start resumes, so no other start can take it in between.
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

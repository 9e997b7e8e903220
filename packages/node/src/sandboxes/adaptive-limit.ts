/** Relative change of the throughput below which it counts as unchanged. */
const NOISE = 0.05;

/**
 * Finds the number of parallel starts with the highest throughput. It changes the limit by one after each round: in the direction in which
 * the throughput grows, and down when it does not change. Only rounds in which starts wait count. Other rounds measure the demand, not the
 * host.
 */
export class AdaptiveLimit {
  readonly #min: number;
  readonly #max: number;
  #value: number;
  #step = 1;
  #lastThroughput = 0;
  #round: { readonly since: number; done: number } | undefined;

  constructor({ min, max }: { min: number; max: number }) {
    this.#min = min;
    this.#max = max;
    this.#value = Math.min(max, min * 2);
  }

  get value(): number {
    return this.#value;
  }

  /** Reports a finished start. `now` is in milliseconds of any monotonic clock. */
  done({ isSaturated, now }: { isSaturated: boolean; now: number }): void {
    if (!isSaturated) {
      this.#round = undefined;
      return;
    }
    this.#round ??= { since: now, done: -1 };
    this.#round.done += 1;
    if (this.#round.done < 2 * this.#value) return;
    this.#adjust(this.#round.done / Math.max(1, now - this.#round.since));
    this.#round = { since: now, done: 0 };
  }

  #adjust(throughput: number): void {
    if (throughput < this.#lastThroughput * (1 - NOISE)) this.#step = -this.#step;
    else if (throughput < this.#lastThroughput * (1 + NOISE)) this.#step = -1;
    this.#lastThroughput = throughput;
    this.#value = Math.min(this.#max, Math.max(this.#min, this.#value + this.#step));
    if (this.#value === this.#min) this.#step = 1;
  }
}

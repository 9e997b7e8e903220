/** Named durations of one operation, in milliseconds, for its log line. */
export class Phases {
  readonly #fields: Record<string, number> = {};
  readonly #startedAt = performance.now();
  #last = this.#startedAt;

  mark(name: string): void {
    const now = performance.now();
    this.#fields[`${name}_ms`] = elapsed(this.#last, now);
    this.#last = now;
  }

  fields(): Record<string, number> {
    return { ...this.#fields, duration_ms: elapsed(this.#startedAt) };
  }
}

function elapsed(since: number, now = performance.now()): number {
  return Math.round((now - since) * 10) / 10;
}

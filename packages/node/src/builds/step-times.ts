/** Most steps whose durations are logged one by one. */
const MOST_STEPS = 100;

/** How long each step of a build took, in milliseconds. A step lasts until another one says something. */
export class StepTimes {
  readonly #startedAt = performance.now();
  readonly #times = new Map<string, number>();
  #current: { readonly step: string; readonly since: number } | undefined;

  at(step: string): void {
    if (step === "" || step === this.#current?.step) return;
    this.#close();
    this.#current = { step, since: performance.now() };
  }

  fields(): { steps_ms: Record<string, number>; duration_ms: number } {
    this.#close();
    return { steps_ms: Object.fromEntries(this.#times), duration_ms: Math.round(performance.now() - this.#startedAt) };
  }

  #close(): void {
    const now = performance.now();
    if (this.#current && (this.#times.size < MOST_STEPS || this.#times.has(this.#current.step)))
      this.#times.set(this.#current.step, Math.round((this.#times.get(this.#current.step) ?? 0) + now - this.#current.since));
    this.#current = undefined;
  }
}

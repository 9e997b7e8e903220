import { recordPastSpan } from "@skerry/telemetry";
import { operationDuration, phaseDuration } from "../metrics.ts";

/** What is timed. The names are labels of metrics. */
export type TimedOperation = "claim" | "start" | "boot" | "restore" | "pause" | "snapshot" | "kill";

/** Named durations of one operation, for its log line in milliseconds, and for the metrics. */
export class Phases {
  readonly #operation: TimedOperation;
  readonly #fields: Record<string, number> = {};
  readonly #startedAt = performance.now();
  #last = this.#startedAt;

  constructor(operation: TimedOperation) {
    this.#operation = operation;
  }

  /** Ends the phase `name`, which must come from a fixed list. */
  mark(name: string): void {
    const now = performance.now();
    this.#fields[`${name}_ms`] = elapsed(this.#last, now);
    phaseDuration.observe({ operation: this.#operation, phase: name }, (now - this.#last) / 1000);
    recordPastSpan({ name: `${this.#operation} ${name}` }, now - this.#last);
    this.#last = now;
  }

  /** Ends the operation. */
  fields(): Record<string, number> {
    const now = performance.now();
    operationDuration.observe({ operation: this.#operation }, (now - this.#startedAt) / 1000);
    return { ...this.#fields, duration_ms: elapsed(this.#startedAt, now) };
  }
}

function elapsed(since: number, now: number): number {
  return Math.round((now - since) * 10) / 10;
}

// The egress lines of one sandbox that are not in a batch yet. A sandbox may write as many lines as it likes; what is kept of them is bounded,
// and the rest is counted.

import type { EgressRecord } from "../egress/egress-record.ts";

export interface EgressLine extends EgressRecord {
  /** How many attempts the line stands for. */
  readonly count: number;
}

/** Lines that a sandbox may write at once: an installation of packages, or a page in a browser, opens many connections. */
const BURST = 300;
const LINES_PER_SECOND = 5;
/** Lines that wait for a batch, also while the API is away. */
const MAX_WAITING = 500;
/** `rule` of the line that stands for the lines beyond. */
export const OMITTED = "omitted";

export type Omitted = Pick<EgressRecord, "receivedBytes" | "sentBytes" | "timeMs" | "verdict">;

export class EgressLines {
  #waiting = new Map<string, EgressLine>();
  #omitted = new Map<EgressRecord["verdict"], EgressLine>();
  #serial = 0;
  #tokens = BURST;
  #filledMs: number;

  constructor(nowMs: number) {
    this.#filledMs = nowMs;
  }

  /** Whether a new object would do the same. */
  isSpare(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#waiting.size === 0 && this.#omitted.size === 0 && this.#tokens === BURST;
  }

  add(record: EgressRecord, nowMs: number): void {
    const { protocol, name, address, port, rule, verdict } = record;
    // The same attempt again changes only the number. A connection has bytes of its own, and so a line.
    this.#serial += 1;
    const key = verdict === "refused" ? JSON.stringify([protocol, name, address, port, rule]) : String(this.#serial);
    const same = this.#waiting.get(key);
    if (same) return void this.#waiting.set(key, { ...same, count: same.count + 1 });
    if (this.#hasRoom(nowMs)) return void this.#waiting.set(key, { ...record, count: 1 });
    this.omit(record);
  }

  /** Removes and returns the oldest lines. The line about those that were omitted comes last. */
  take(most: number): EgressLine[] {
    const taken = [...this.#waiting].slice(0, most);
    for (const [key] of taken) this.#waiting.delete(key);
    const lines = taken.map(([, line]) => line);
    if (this.#waiting.size > 0 || lines.length === most) return lines;
    const omitted = [...this.#omitted.values()];
    this.#omitted = new Map();
    return [...lines, ...omitted];
  }

  #hasRoom(nowMs: number): boolean {
    this.#fill(nowMs);
    if (this.#tokens < 1 || this.#waiting.size >= MAX_WAITING) return false;
    this.#tokens -= 1;
    return true;
  }

  #fill(nowMs: number): void {
    const seconds = Math.max(0, nowMs - this.#filledMs) / 1000;
    this.#tokens = Math.min(BURST, this.#tokens + seconds * LINES_PER_SECOND);
    this.#filledMs = nowMs;
  }

  /** Counts what gets no line of its own. */
  omit({ timeMs, verdict, sentBytes, receivedBytes }: Omitted, count = 1): void {
    const before = this.#omitted.get(verdict);
    this.#omitted.set(verdict, {
      timeMs: before?.timeMs ?? timeMs,
      protocol: "other",
      name: "",
      address: "",
      port: 0,
      sentBytes: (before?.sentBytes ?? 0) + sentBytes,
      receivedBytes: (before?.receivedBytes ?? 0) + receivedBytes,
      verdict,
      rule: OMITTED,
      count: (before?.count ?? 0) + count,
    });
  }
}

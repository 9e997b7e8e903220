// Keeps a flood of refused and failed requests from filling the audit log. The first one is a line of its own. What is like it, within a
// minute, is one more line that says how many. There are only so many different ones in a minute, too; one line counts those beyond.

import type { NewAuditLine } from "@skerry/store";

const WINDOW_MS = 60_000;
/** Different lines in a minute, of each team or user, and of all requests without a valid credential together. */
const MAX_LINES = 60;

interface Seen {
  readonly line: NewAuditLine;
  readonly since: number;
  repeats: number;
}

interface Beyond {
  readonly since: number;
  readonly teamId: string | null;
  count: number;
}

export class Repeats {
  readonly #seen = new Map<string, Seen>();
  /** Lines of each caller in `#seen`. */
  readonly #lines = new Map<string, number>();
  readonly #beyond = new Map<string, Beyond>();

  /** Whether the line is to be written now. Otherwise it is counted. `now` is of a monotonic clock. */
  admit(line: NewAuditLine, now: number): boolean {
    const key = [line.actor, line.credentialMask, line.address, line.operation, line.status, line.reason, line.subjectId].join(" ");
    const seen = this.#seen.get(key);
    if (seen) {
      seen.repeats += 1;
      return false;
    }
    const caller = line.actor;
    const lines = this.#lines.get(caller) ?? 0;
    if (lines >= MAX_LINES) {
      const beyond = this.#beyond.get(caller) ?? { since: now, teamId: line.teamId, count: 0 };
      beyond.count += 1;
      this.#beyond.set(caller, beyond);
      return false;
    }
    this.#lines.set(caller, lines + 1);
    this.#seen.set(key, { line, since: now, repeats: 0 });
    return true;
  }

  /** The lines that say how many there were, of all minutes that are over. */
  take(now: number): readonly NewAuditLine[] {
    const lines: NewAuditLine[] = [];
    for (const [key, { line, since, repeats }] of this.#seen) {
      if (now - since < WINDOW_MS) continue;
      this.#seen.delete(key);
      const caller = line.actor;
      const left = (this.#lines.get(caller) ?? 1) - 1;
      if (left > 0) this.#lines.set(caller, left);
      else this.#lines.delete(caller);
      if (repeats > 0) lines.push({ ...line, requestId: null, durationMs: null, count: repeats });
    }
    for (const [caller, { since, teamId, count }] of this.#beyond) {
      if (now - since < WINDOW_MS) continue;
      this.#beyond.delete(caller);
      lines.push({ ...OF_MANY, teamId, actor: caller, count });
    }
    return lines;
  }
}

/** A line for refusals that have nothing but their caller in common. */
const OF_MANY = {
  requestId: null,
  operation: null,
  userId: null,
  credentialId: null,
  credentialMask: null,
  address: null,
  subjectId: null,
  outcome: "refused",
  status: null,
  reason: null,
  durationMs: null,
  madeIds: null,
} as const;

// Decides whether a process still works on an operation that has begun. The evidence is which processes are alive, and how long this process
// has seen the operation unchanged by its monotonic clock. Times that other hosts wrote are never compared with the clock of this one.
//
// Failure policy: in doubt, a process works on it. An operation that is taken for abandoned too early loses at most its turn, because every
// change of state is a compare-and-set.

import type { Liveness } from "../../liveness.ts";
import type { SandboxMoves } from "../lifecycle/moves.ts";

/** How long an operation is remembered after the last question about it. */
const FORGET_AFTER_MS = 600_000;

export interface Begun {
  /** Identifies the operation. It differs after each change. */
  readonly key: string;
  readonly owner: string;
  /** The longest time that the operation may take. */
  readonly longestMs: number;
}

interface Watched {
  readonly since: number;
  askedAt: number;
}

export class LeftOvers {
  readonly #moves: Pick<SandboxMoves, "isOrphaned">;
  readonly #liveness: Liveness;
  readonly #watched = new Map<string, Watched>();
  #sweptAt = 0;

  constructor(moves: Pick<SandboxMoves, "isOrphaned">, liveness: Liveness) {
    this.#moves = moves;
    this.#liveness = liveness;
  }

  /** Whether the operation is abandoned. Ask repeatedly: the observation of an operation begins with the first question. */
  isLeft({ key, owner, longestMs }: Begun, now = performance.now()): boolean {
    if (this.#moves.isOrphaned(owner)) return true;
    this.#sweep(now);
    const watched = this.#watched.get(key) ?? { since: now, askedAt: now };
    watched.askedAt = now;
    this.#watched.set(key, watched);
    // A process sends a heartbeat before its first operation, and continues to send them.
    if (this.#liveness.isUnknownSince(owner, watched.since)) return true;
    return now - watched.since > longestMs;
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < FORGET_AFTER_MS) return;
    this.#sweptAt = now;
    for (const [key, { askedAt }] of this.#watched) if (now - askedAt > FORGET_AFTER_MS) this.#watched.delete(key);
  }
}

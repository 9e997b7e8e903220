// Whether somebody still works on what was begun. Decided by who lives, and by how long this process has watched it without a change, on a
// clock that nobody sets: times that other machines wrote down are never compared with this one's.
// Failure policy: in doubt somebody is at work on it. One that is found left over too early loses no more than its turn, because every
// change of state is a compare-and-set.

import type { Liveness } from "../../liveness.ts";
import type { SandboxMoves } from "../lifecycle/moves.ts";

/** What was not asked about for so long is forgotten. */
const FORGET_AFTER_MS = 600_000;

export interface Begun {
  /** Another one after each change. */
  readonly key: string;
  readonly owner: string;
  /** How long the work takes at most. */
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

  /** Asked again and again: what nobody has named as its own is watched from the first time on. */
  isLeft({ key, owner, longestMs }: Begun, now = performance.now()): boolean {
    if (this.#moves.isOrphaned(owner)) return true;
    this.#sweep(now);
    const watched = this.#watched.get(key) ?? { since: now, askedAt: now };
    watched.askedAt = now;
    this.#watched.set(key, watched);
    // A process says that it lives before it begins anything, and goes on saying so.
    if (this.#liveness.isUnknownSince(owner, watched.since)) return true;
    return now - watched.since > longestMs;
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < FORGET_AFTER_MS) return;
    this.#sweptAt = now;
    for (const [key, { askedAt }] of this.#watched) if (now - askedAt > FORGET_AFTER_MS) this.#watched.delete(key);
  }
}

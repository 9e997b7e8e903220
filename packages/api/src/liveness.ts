// Which control processes work on this database. Each raises its number; one whose number has not grown for a while is dead
// for whoever watches. Watched on a clock that nobody sets: those of several machines differ, and may be set back.
// Failure policy: an unreadable database proves nothing. One that is taken for dead wrongly loses no more than its turn:
// every change of state is a compare-and-set.

import type { Clock, Logger } from "@skerry/base";
import type { ProcessRepository } from "@skerry/store";

export interface LivenessDeps {
  readonly processes: ProcessRepository;
  readonly clock: Clock;
  /** Sets `clock` right, which is done as often as this process says that it lives. */
  readonly measureClock: () => Promise<void>;
  readonly logger: Logger;
  readonly beatMs: number;
  readonly deadAfterMs: number;
}

/** Rows of the dead go when nothing that they left can still be looked for by their name. */
const FORGET_AFTER_MS = 3_600_000;

export class Liveness {
  readonly #deps: LivenessDeps;
  readonly #id: string;
  readonly #seen = new Map<string, { readonly beat: number; readonly at: number }>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();
  #stopped = true;
  constructor(id: string, deps: LivenessDeps) {
    this.#id = id;
    this.#deps = deps;
  }

  /** Must be awaited before this process begins anything. */
  async start(): Promise<void> {
    this.#stopped = false;
    await this.look();
    this.#schedule();
  }

  /** Nothing of this process is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#beating;
  }

  /** It was not among the processes at a look that was begun after that time (of `performance.now`), and is not this one. */
  isUnknownSince(id: string, since: number): boolean {
    return id !== this.#id && !this.#seen.has(id) && this.#lookedAt > since;
  }

  isDead(id: string): boolean {
    const seen = this.#seen.get(id);
    return seen !== undefined && performance.now() - seen.at >= this.#deps.deadAfterMs;
  }

  /** Says that this process lives, and sees who else does. */
  async look(): Promise<void> {
    const { processes, clock } = this.#deps;
    const begunAt = performance.now();
    await this.#deps.measureClock();
    await processes.beat(this.#id, clock.now());
    const rows = await processes.list();
    const now = performance.now();
    for (const { id, beat } of rows) {
      if (id === this.#id) continue;
      const seen = this.#seen.get(id);
      if (seen?.beat !== beat) this.#seen.set(id, { beat, at: now });
      else if (now - seen.at > FORGET_AFTER_MS) await processes.forget(id);
    }
    for (const id of this.#seen.keys()) if (!rows.some((row) => row.id === id)) this.#seen.delete(id);
    this.#lookedAt = begunAt;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#beating = this.look()
        .catch((error: unknown) => this.#deps.logger.warn({ err: error }, "this process could not say that it lives"))
        .finally(() => this.#schedule());
    }, this.#deps.beatMs);
  }
}

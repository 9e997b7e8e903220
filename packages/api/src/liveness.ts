// Which API processes work on this database. Each process increments its counter as a heartbeat. A process whose counter has not changed for
// `deadAfterMs` counts as dead. Each process measures that time on its own monotonic clock, because wall clocks of several hosts differ.
// Failure policy: a database that cannot be read proves nothing about the others. A process that is taken for dead by mistake loses only its
// turn, because every change of state is a compare-and-set.

import type { Clock, Logger } from "@skerry/base";
import type { ProcessRepository } from "@skerry/store";

export interface LivenessDeps {
  readonly processes: ProcessRepository;
  readonly clock: Clock;
  /** Synchronises `clock` with the database. Called with every heartbeat. */
  readonly measureClock: () => Promise<void>;
  readonly logger: Logger;
  readonly beatMs: number;
  readonly deadAfterMs: number;
}

/** Age after which the row of a dead process is deleted. By then all its work has been taken over. */
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

  /** Await this before the process begins any operation. */
  async start(): Promise<void> {
    this.#stopped = false;
    await this.look();
    this.#schedule();
  }

  /** Call this when the process has no operation under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#beating;
  }

  /** Whether the process `id` is not this one, and a look that began after `since` (of `performance.now`) did not find it. */
  isUnknownSince(id: string, since: number): boolean {
    return id !== this.#id && !this.#seen.has(id) && this.#lookedAt > since;
  }

  isDead(id: string): boolean {
    const seen = this.#seen.get(id);
    return seen !== undefined && performance.now() - seen.at >= this.#deps.deadAfterMs;
  }

  /** Sends a heartbeat and reads the heartbeats of the other processes. */
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
        .catch((error: unknown) =>
          this.#deps.logger.warn({ err: error }, "heartbeat failed: other processes may take over this process's work"),
        )
        .finally(() => this.#schedule());
    }, this.#deps.beatMs);
  }
}

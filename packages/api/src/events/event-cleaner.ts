// Deletes events that are older than their retention, and the oldest ones of teams that have too many.

import type { Clock, Logger } from "@skerry/base";
import type { EventRepository } from "@skerry/store";

export interface EventCleanerDeps {
  readonly events: EventRepository;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keepMs: number;
  readonly maxOfTeam: number;
  readonly lookMs: number;
}

/** Pause between two deletions of one round, so that they do not hold up the requests. */
const PAUSE_MS = 50;

export class EventCleaner {
  readonly #deps: EventCleanerDeps;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = true;
  constructor(deps: EventCleanerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#isStopped = false;
    this.#schedule(this.#deps.lookMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /** Deletes some. Returns how many. */
  async look(): Promise<number> {
    const { events, clock, keepMs, maxOfTeam } = this.#deps;
    return await events.trim({ before: clock.now() - keepMs, maxOfTeam });
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.look()
        .catch((error: unknown) => {
          this.#deps.logger.warn({ err: error }, "deleting old events failed");
          return 0;
        })
        .then((deleted) => this.#schedule(deleted > 0 ? PAUSE_MS : this.#deps.lookMs));
    }, delayMs);
  }
}

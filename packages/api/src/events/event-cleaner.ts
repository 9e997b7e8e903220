// Deletes events that are older than their retention, and the oldest ones of teams that have too many.

import type { Clock, Logger } from "@skerry/base";
import type { EventRepository } from "@skerry/store";
import { RepeatedWork } from "../repeated-work.ts";

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
  readonly #rounds: RepeatedWork<number>;
  constructor(deps: EventCleanerDeps) {
    this.#deps = deps;
    this.#rounds = new RepeatedWork({
      work: () => this.look(),
      pauseMs: deps.lookMs,
      pauseAfter: (deleted) => (deleted > 0 ? PAUSE_MS : deps.lookMs),
      onError: (error) => deps.logger.warn({ err: error }, "deleting old events failed"),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /** Deletes some. Returns how many. */
  async look(): Promise<number> {
    const { events, clock, keepMs, maxOfTeam } = this.#deps;
    return await events.trim({ before: clock.now() - keepMs, maxOfTeam });
  }
}

// Gives new events their numbers, and wakes the readers of this process: streams and webhooks. Several processes may do this on one
// database; one at a time gives the numbers, and each finds the events that another one numbered.
// Failure policy: events wait in the database until it answers again.

import type { Logger } from "@skerry/base";
import { type EventRepository, isDatabaseAway } from "@skerry/store";
import { eventsNumbered } from "../metrics.ts";
import { RepeatedWork } from "../repeated-work.ts";

export interface EventFeedDeps {
  readonly events: EventRepository;
  readonly logger: Logger;
  /** Interval between two looks for new events. */
  readonly lookMs: number;
}

/** A reader's place in the feed. It wakes once for any number of events that came meanwhile. */
export class Subscription {
  #hasNews = true;
  #wake: (() => void) | undefined;

  notify(): void {
    this.#hasNews = true;
    this.#wake?.();
  }

  /** Resolves with true when there may be new events since the last call, and with false after `timeoutMs` or when the signal is aborted. */
  async next(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#hasNews && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = setTimeout(resolve, timeoutMs);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      clearTimeout(timer);
      this.#wake = undefined;
    }
    const hadNews = this.#hasNews;
    this.#hasNews = false;
    return hadNews;
  }
}

export class EventFeed {
  readonly #deps: EventFeedDeps;
  readonly #readers = new Map<Subscription, string | undefined>();
  /** The last number that readers were woken for; undefined while there are none. */
  #seen: number | undefined;
  readonly #rounds: RepeatedWork;
  #isAway = false;
  constructor(deps: EventFeedDeps) {
    this.#deps = deps;
    this.#rounds = new RepeatedWork({
      work: async () => {
        await this.look();
        this.#isAway = false;
      },
      pauseMs: deps.lookMs,
      onError: (error) => this.#complain(error),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /** Without a team: the events of all teams. The caller ends the subscription. */
  subscribe(teamId: string | undefined): { readonly subscription: Subscription; readonly end: () => void } {
    const subscription = new Subscription();
    this.#readers.set(subscription, teamId);
    return { subscription, end: () => this.#readers.delete(subscription) };
  }

  async look(): Promise<void> {
    const { events } = this.#deps;
    // More may wait than one transaction takes.
    for (let count = await events.number(); count > 0; count = await events.number()) eventsNumbered.inc(count);
    if (this.#readers.size === 0) {
      this.#seen = undefined;
      return;
    }
    const last = await events.last();
    if (last === this.#seen) return;
    // The first look after a pause does not know what was numbered meanwhile.
    const teams = this.#seen === undefined ? undefined : new Set(await events.teamsSince(this.#seen));
    this.#seen = last;
    for (const [reader, teamId] of this.#readers) if (teamId === undefined || teams === undefined || teams.has(teamId)) reader.notify();
  }

  /** An outage is logged once. */
  #complain(error: unknown): void {
    if (this.#isAway) return;
    this.#isAway = isDatabaseAway(error);
    this.#deps.logger.warn({ err: error }, "looking for new events failed; they wait in the database");
  }
}

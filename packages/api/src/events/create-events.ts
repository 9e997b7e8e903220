import type { Clock, Logger } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiConfig, ApiTiming } from "../config.ts";
import { EventCleaner } from "./event-cleaner.ts";
import { EventFeed } from "./event-feed.ts";
import { EventService } from "./event-service.ts";

const DAY_MS = 24 * 3_600_000;

export interface Events {
  readonly service: EventService;
  readonly feed: EventFeed;
  start(): void;
  /** Precondition: the service was stopped. */
  stop(): Promise<void>;
}

export function createEvents(
  config: Pick<ApiConfig, "eventDays" | "maxEvents">,
  deps: { readonly store: Store; readonly clock: Clock; readonly logger: Logger; readonly timing: ApiTiming },
): Events {
  const { clock, logger, timing } = deps;
  const { events } = deps.store;
  const { eventDays: keepDays, maxEvents: maxOfTeam } = config;
  const feed = new EventFeed({ events, logger, lookMs: timing.eventLookMs });
  const cleaner = new EventCleaner({ events, clock, logger, keepMs: keepDays * DAY_MS, maxOfTeam, lookMs: timing.eventCleanMs });
  return {
    service: new EventService({ events, feed, heartbeatMs: timing.eventHeartbeatMs, keepDays }),
    feed,
    start() {
      feed.start();
      cleaner.start();
    },
    async stop() {
      await Promise.all([feed.stop(), cleaner.stop()]);
    },
  };
}

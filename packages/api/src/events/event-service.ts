import { type EventFilter, type EventPage, type EventRepository, positionOf, type StoredEvent } from "@skerry/store";
import { publicError } from "../errors.ts";
import { type Page, pageOf } from "../page.ts";
import type { EventFeed } from "./event-feed.ts";

/** How many events a stream reads at a time. */
const STREAM_PAGE = 100;
/** Streams that one team may have open in this process. Each one holds a connection and reads the database for itself. */
const MAX_STREAMS_OF_TEAM = 50;
const ADMIN = "";

export interface EventServiceDeps {
  readonly events: EventRepository;
  readonly feed: EventFeed;
  /** Longest silence of a stream. */
  readonly heartbeatMs: number;
  /** Shown as `events_ttl_days`. */
  readonly keepDays: number;
}

export interface StreamRequest {
  /** Only `teamId`, `subjectId` and `types`. */
  readonly filter: EventFilter;
  /** The stream begins after this event. Undefined: with the next new one. */
  readonly after: number | undefined;
  /** Throws when the caller may not read any more. It is called at every heartbeat. */
  readonly recheck: () => Promise<unknown>;
  readonly signal: AbortSignal;
}

export class EventService {
  readonly #deps: EventServiceDeps;
  readonly #streams = new Map<string, number>();
  readonly #closing = new AbortController();
  readonly keepDays: number;
  constructor(deps: EventServiceDeps) {
    this.#deps = deps;
    this.keepDays = deps.keepDays;
  }

  async list(filter: EventFilter, page: EventPage): Promise<Page<StoredEvent>> {
    return pageOf(await this.#deps.events.list(filter, { ...page, limit: page.limit + 1 }), page.limit);
  }

  /**
   * New events as they come: an event, or undefined for a sign of life. Throws at once when the team has too many streams. The reader decides
   * how fast it goes: the stream reads the database only when the reader wants more.
   */
  async stream(request: StreamRequest): Promise<AsyncGenerator<StoredEvent | undefined>> {
    const scope = request.filter.teamId ?? ADMIN;
    const open = this.#streams.get(scope) ?? 0;
    if (open >= MAX_STREAMS_OF_TEAM) throw publicError("limit_reached", `${open} event streams are open, and a team may have that many`);
    const after = request.after ?? (await this.#deps.events.last(scope));
    return this.#read(request, { scope, after });
  }

  /** Ends all streams. */
  stop(): void {
    this.#closing.abort();
  }

  async *#read({ filter, recheck, signal }: StreamRequest, { scope, after }: { scope: string; after: number }) {
    const { events, feed, heartbeatMs } = this.#deps;
    const over = AbortSignal.any([signal, this.#closing.signal]);
    const { subscription, end } = feed.subscribe(filter.teamId);
    this.#streams.set(scope, (this.#streams.get(scope) ?? 0) + 1);
    try {
      yield undefined;
      for (let place = after; !over.aborted; ) {
        if (!(await subscription.next(heartbeatMs, over))) {
          if (over.aborted) return;
          await recheck();
          yield undefined;
          continue;
        }
        for (let isFull = true; isFull && !over.aborted; ) {
          const page = await events.list(filter, { order: "asc", limit: STREAM_PAGE, after: { place } });
          for (const event of page) {
            yield event;
            ({ place } = positionOf(event, filter));
          }
          isFull = page.length === STREAM_PAGE;
        }
      }
    } finally {
      end();
      const left = (this.#streams.get(scope) ?? 1) - 1;
      if (left > 0) this.#streams.set(scope, left);
      else this.#streams.delete(scope);
    }
  }
}

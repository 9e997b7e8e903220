import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import type { Database } from "../tables.ts";
import { eventFrom, type StoredEvent } from "./event.ts";
import type { EventType } from "./event-type.ts";

export interface EventFilter {
  /** Absent: events of all teams, in the order of their numbers. Then no other field may be set, because no index would serve it. */
  readonly teamId?: string;
  /** Only about this sandbox, template or other thing. */
  readonly subjectId?: string;
  /** Only of these types. */
  readonly types?: readonly EventType[];
  /** Only from this time on, and before that one. Without a subject, pages are in the order of the times. */
  readonly from?: number;
  readonly to?: number;
}

/** A page begins after the event with these values, in the direction of the page. */
export interface EventPosition {
  readonly place: number;
  /** Only in lists by time. */
  readonly at?: number;
}

export interface EventPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  readonly after?: EventPosition;
}

type Query = SelectQueryBuilder<Database, "events", object>;

export function isByTime(filter: EventFilter): boolean {
  return filter.subjectId === undefined && (filter.from !== undefined || filter.to !== undefined);
}

export function positionOf(event: StoredEvent, filter: EventFilter): EventPosition {
  const place = filter.teamId === undefined ? event.number : event.sequence;
  return isByTime(filter) ? { place, at: event.at } : { place };
}

export async function listEvents(db: Kysely<Database>, filter: EventFilter, page: EventPage): Promise<readonly StoredEvent[]> {
  const { types } = filter;
  const isIndexed = filter.subjectId !== undefined || isByTime(filter) || types === undefined || types.length === 1;
  if (isIndexed) return await read(db, filter, page);
  // One search for each type: each reads its own part of the index, however rare the type is.
  const found = [];
  for (const type of types) found.push(...(await read(db, { ...filter, types: [type] }, page)));
  const sign = page.order === "asc" ? 1 : -1;
  return found.toSorted((a, b) => sign * (a.number - b.number)).slice(0, page.limit);
}

async function read(db: Kysely<Database>, filter: EventFilter, page: EventPage): Promise<readonly StoredEvent[]> {
  const { teamId, subjectId, types, from, to } = filter;
  const place = teamId === undefined ? "number" : "sequence";
  let query: Query = db.selectFrom("events");
  if (teamId !== undefined) query = query.where("team_id", "=", teamId);
  if (subjectId !== undefined) query = query.where("subject_id", "=", subjectId);
  if (types !== undefined) query = query.where("type", "in", types);
  // The sum keeps SQLite from searching by time for the few events of one subject.
  const at = subjectId === undefined ? sql<number>`at` : sql<number>`(at + 0)`;
  if (from !== undefined) query = query.where(at, ">=", from);
  if (to !== undefined) query = query.where(at, "<", to);
  if (page.after) query = query.where(isBeyond(page.after, page.order, place));
  if (isByTime(filter)) query = query.orderBy("at", page.order);
  const rows = await query.orderBy(place, page.order).limit(page.limit).selectAll().execute();
  return rows.map(eventFrom);
}

function isBeyond(after: EventPosition, order: "asc" | "desc", place: "number" | "sequence") {
  const sign = sql.raw(order === "asc" ? ">" : "<");
  if (after.at === undefined) return sql<boolean>`${sql.ref(place)} ${sign} ${after.place}`;
  return sql<boolean>`(at, ${sql.ref(place)}) ${sign} (${after.at}, ${after.place})`;
}

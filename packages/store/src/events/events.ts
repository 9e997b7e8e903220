// The events of teams in the order that readers rely on. A transaction leaves its events in the outbox; afterwards one process at a time
// gives them numbers. So a reader that has seen a number has seen every lower one, also with several processes on PostgreSQL, where
// transactions commit in another order than they began. Two changes of one thing keep their order: the second transaction waits for the
// row of the first one, and writes its event after that.

import { type Kysely, sql } from "kysely";
import type { DialectName } from "../dialect/lock-team.ts";
import type { Database } from "../tables.ts";
import type { StoredEvent } from "./event.ts";
import { type EventFilter, type EventPage, listEvents } from "./event-list.ts";

/** Events that get their numbers in one transaction. */
const BATCH = 500;
/** The scope of the counter of all teams. */
const ALL = "";

export interface Retention {
  /** Events from before this time are deleted. */
  readonly before: number;
  /** So many of the newest events of a team stay. */
  readonly maxOfTeam: number;
}

export class EventRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Gives waiting events their numbers. Returns how many; 0 as well when another process is doing it. */
  async number(): Promise<number> {
    if ((await this.#db.selectFrom("event_outbox").select("position").limit(1).executeTakeFirst()) === undefined) return 0;
    return await this.#db.transaction().execute(async (tx) => {
      const counter = tx.selectFrom("event_counters").where("scope", "=", ALL).select("last");
      const all = await (this.#dialect === "postgres" ? counter.forUpdate().skipLocked() : counter).executeTakeFirst();
      if (!all) return 0;
      const waiting = await tx.selectFrom("event_outbox").orderBy("position").limit(BATCH).selectAll().execute();
      if (waiting.length === 0) return 0;
      const teams = [...new Set(waiting.map((row) => row.team_id))];
      const counters = await tx.selectFrom("event_counters").where("scope", "in", teams).selectAll().execute();
      const last = new Map([[ALL, all.last], ...counters.map((row) => [row.scope, row.last] as const)]);
      const next = (scope: string) => {
        const value = (last.get(scope) ?? 0) + 1;
        last.set(scope, value);
        return value;
      };
      const rows = waiting.map(({ position: _, ...row }) => ({ ...row, number: next(ALL), sequence: next(row.team_id) }));
      await tx.insertInto("events").values(rows).execute();
      const positions = waiting.map((row) => row.position);
      await tx.deleteFrom("event_outbox").where("position", "in", positions).execute();
      await tx
        .insertInto("event_counters")
        .values([...last].map(([scope, value]) => ({ scope, last: value })))
        .onConflict((conflict) => conflict.column("scope").doUpdateSet((eb) => ({ last: eb.ref("excluded.last") })))
        .execute();
      return rows.length;
    });
  }

  async list(filter: EventFilter, page: EventPage): Promise<readonly StoredEvent[]> {
    return await listEvents(this.#db, filter, page);
  }

  /** The last number of all teams, or the last sequence of one team. */
  async last(teamId: string = ALL): Promise<number> {
    const row = await this.#db.selectFrom("event_counters").where("scope", "=", teamId).select("last").executeTakeFirst();
    return row?.last ?? 0;
  }

  /** The teams that have events with higher numbers. */
  async teamsSince(number: number): Promise<readonly string[]> {
    const rows = await this.#db.selectFrom("events").where("number", ">", number).select("team_id").distinct().execute();
    return rows.map((row) => row.team_id);
  }

  /** Age of the oldest event that waits for its number, in milliseconds; 0 when none does. */
  async lagMs(now: number): Promise<number> {
    const row = await this.#db.selectFrom("event_outbox").select("at").orderBy("position").limit(1).executeTakeFirst();
    return row === undefined ? 0 : Math.max(0, now - row.at);
  }

  /** Deletes the events that are too old or too many, at most `limit` of each team. Returns how many. */
  async trim({ before, maxOfTeam }: Retention, limit = 1_000): Promise<number> {
    const counters = await this.#db.selectFrom("event_counters").where("scope", "!=", ALL).selectAll().execute();
    let deleted = 0;
    for (const { scope, last } of counters) {
      const { numDeletedRows } = await this.#db
        .deleteFrom("events")
        .where("number", "in", (eb) => {
          const old = eb.selectFrom("events").where("team_id", "=", scope);
          return old.where("at", "<", before).orderBy("at").orderBy("sequence").limit(limit).select("number");
        })
        .executeTakeFirstOrThrow();
      const surplus = await this.#db
        .deleteFrom("events")
        .where("number", "in", (eb) => {
          const many = eb.selectFrom("events").where("team_id", "=", scope);
          return many
            .where("sequence", "<=", last - maxOfTeam)
            .orderBy("sequence")
            .limit(limit)
            .select("number");
        })
        .executeTakeFirstOrThrow();
      deleted += Number(numDeletedRows + surplus.numDeletedRows);
    }
    return deleted;
  }

  /** The sequence of the oldest event that the team still has; undefined when it has none. */
  async oldest(teamId: string): Promise<number | undefined> {
    const row = await this.#db
      .selectFrom("events")
      .where("team_id", "=", teamId)
      .select(sql<number | null>`min(sequence)`.as("sequence"))
      .executeTakeFirst();
    return row?.sequence ?? undefined;
  }
}

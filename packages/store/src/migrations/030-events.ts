import { type ColumnDefinitionBuilder, type CreateTableBuilder, type Kysely, SqliteAdapter } from "kysely";
import type { Migration } from "kysely/migration";

const required = (column: ColumnDefinitionBuilder) => column.notNull();

/** The events of teams: what transactions wrote, and what has its number. No references: an event outlives what it is about. */
export const events: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter;
    // Only this type makes SQLite choose the value itself.
    const outbox = isSqlite
      ? db.schema.createTable("event_outbox").addColumn("position", "integer", (column) => column.primaryKey())
      : db.schema.createTable("event_outbox").addColumn("position", "bigint", (column) => column.primaryKey().generatedAlwaysAsIdentity());
    await withFacts(outbox).execute();
    const log = db.schema
      .createTable("events")
      .addColumn("number", "bigint", (column) => column.primaryKey())
      .addColumn("sequence", "bigint", required);
    await withFacts(log).execute();
    await db.schema
      .createTable("event_counters")
      .addColumn("scope", "text", (column) => column.primaryKey())
      .addColumn("last", "bigint", required)
      .execute();
    // Its lock makes one process at a time give numbers.
    await db
      .insertInto("event_counters" as never)
      .values({ scope: "", last: 0 } as never)
      .execute();
    await createIndexes(db);
  },
};

function withFacts<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addColumn("id", "text", required)
    .addColumn("team_id", "text", required)
    .addColumn("type", "text", required)
    .addColumn("subject_id", "text", required)
    .addColumn("at", "bigint", required)
    .addColumn("actor", "text", required)
    .addColumn("reason", "text")
    .addColumn("request_id", "text")
    .addColumn("facts", "text", required);
}

/** One index for each way to read: all, of one kind, about one subject, and by time (the type is there to be filtered by). */
async function createIndexes(db: Kysely<unknown>): Promise<void> {
  await db.schema.createIndex("events_sequence").unique().on("events").columns(["team_id", "sequence"]).execute();
  await db.schema.createIndex("events_type").on("events").columns(["team_id", "type", "sequence"]).execute();
  await db.schema.createIndex("events_subject").on("events").columns(["team_id", "subject_id", "sequence", "type"]).execute();
  await db.schema.createIndex("events_time").on("events").columns(["team_id", "at", "sequence", "type"]).execute();
}

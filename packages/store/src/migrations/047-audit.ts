import { type ColumnDefinitionBuilder, type Kysely, SqliteAdapter, sql } from "kysely";
import type { Migration } from "kysely/migration";

const required = (column: ColumnDefinitionBuilder) => column.notNull();

/** The audit log, and the begun lines of requests that are not answered yet. No references: a line outlives what it is about. */
export const audit: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("audit_pending")
      .addColumn("request_id", "text", (column) => column.primaryKey())
      .addColumn("run", "text", required)
      // JSON.
      .addColumn("facts", "text", required)
      .execute();
    await db.schema
      .createTable("audit_log")
      .addColumn("number", "bigint", (column) => column.primaryKey())
      .addColumn("at", "bigint", required)
      .addColumn("request_id", "text")
      .addColumn("operation", "text")
      .addColumn("team_id", "text")
      .addColumn("actor", "text", required)
      .addColumn("user_id", "text")
      .addColumn("credential_id", "text")
      .addColumn("credential_mask", "text")
      .addColumn("address", "text")
      .addColumn("subject_id", "text")
      .addColumn("outcome", "text", required)
      .addColumn("status", "integer")
      .addColumn("reason", "text")
      .addColumn("duration_ms", "bigint")
      .addColumn("made_ids", "text")
      .addColumn("count", "integer", required)
      .execute();
    await db.schema.createIndex("audit_log_team").on("audit_log").columns(["team_id", "number"]).execute();
    await db.schema.createIndex("audit_log_time").on("audit_log").columns(["at", "number"]).execute();
    // Its lock makes one process at a time append.
    await db.schema.createTable("audit_counter").addColumn("last", "bigint", required).addColumn("last_at", "bigint", required).execute();
    await db
      .insertInto("audit_counter" as never)
      .values({ last: 0, last_at: 0 } as never)
      .execute();
    await refuseChanges(db);
  },
};

/** Lines are appended, and deleted when they are old. */
async function refuseChanges(db: Kysely<unknown>): Promise<void> {
  if (db.getExecutor().adapter instanceof SqliteAdapter) {
    await sql`create trigger audit_log_unchanged before update on audit_log begin select raise(abort, 'lines of the audit log are not changed'); end`.execute(
      db,
    );
    return;
  }
  await sql`create function audit_log_unchanged() returns trigger language plpgsql as
    $$ begin raise exception 'lines of the audit log are not changed'; end $$`.execute(db);
  await sql`create trigger audit_log_unchanged before update on audit_log for each row execute function audit_log_unchanged()`.execute(db);
}

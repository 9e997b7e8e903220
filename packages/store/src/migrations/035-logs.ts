import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Logs of sandboxes. They outlive their sandbox, so they name its team themselves. No two lines of a sandbox have the same time, and a later
 * line never has an earlier one: clients read on from the time of the last line that they have.
 */
export const logs: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("sandbox_logs")
      .addColumn("sandbox_id", "text", (column) => column.primaryKey())
      .addColumn("team_id", "text", (column) => column.notNull())
      // The times of its lines lie between these.
      .addColumn("first_at", "bigint", (column) => column.notNull())
      .addColumn("last_at", "bigint", (column) => column.notNull())
      .addColumn("lines", "integer", (column) => column.notNull())
      .addColumn("characters", "bigint", (column) => column.notNull())
      // How many lines were removed because the log was too long, and the time of the line that says so.
      .addColumn("removed", "bigint", (column) => column.notNull())
      .addColumn("removed_at", "bigint")
      .execute();
    // No index of teams or of lines: each change of a sandbox writes here, and a full disk has room for few pages.
    await db.schema.createIndex("sandbox_logs_first").on("sandbox_logs").column("first_at").execute();
    await db.schema.createIndex("sandbox_logs_last").on("sandbox_logs").column("last_at").execute();
    await db.schema
      .createTable("log_lines")
      .addColumn("sandbox_id", "text", (column) => column.notNull().references("sandbox_logs.sandbox_id").onDelete("cascade"))
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("level", "integer", (column) => column.notNull())
      // 1: the guest wrote it.
      .addColumn("is_guest", "integer", (column) => column.notNull())
      .addColumn("logger", "text", (column) => column.notNull())
      .addColumn("message", "text", (column) => column.notNull())
      // JSON of texts.
      .addColumn("fields", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("log_lines_pk", ["sandbox_id", "at"])
      .execute();
    // The last line of each source that is stored. A source numbers its lines, so that one that is delivered again is found.
    await db.schema
      .createTable("log_sources")
      .addColumn("sandbox_id", "text", (column) => column.notNull().references("sandbox_logs.sandbox_id").onDelete("cascade"))
      .addColumn("source", "text", (column) => column.notNull())
      .addColumn("number", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("log_sources_pk", ["sandbox_id", "source"])
      .execute();
  },
};

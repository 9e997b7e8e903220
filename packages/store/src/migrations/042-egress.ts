import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * What sandboxes reached and tried to reach. A line has a position in the log of its sandbox: positions rise, and none is left out, so readers
 * go on from the last one that they have. Logs outlive their sandbox, so they name its team themselves.
 */
export const egress: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("egress_logs")
      .addColumn("sandbox_id", "text", (column) => column.primaryKey())
      .addColumn("team_id", "text", (column) => column.notNull())
      // Position of its last line.
      .addColumn("last_position", "bigint", (column) => column.notNull())
      // How many lines are stored: the last ones.
      .addColumn("lines", "integer", (column) => column.notNull())
      .addColumn("changed_at", "bigint", (column) => column.notNull())
      .addColumn("sent", "bigint", (column) => column.notNull())
      .addColumn("received", "bigint", (column) => column.notNull())
      .addColumn("connections", "bigint", (column) => column.notNull())
      .addColumn("refused", "bigint", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("egress_logs_age").on("egress_logs").column("changed_at").execute();
    await db.schema.createIndex("egress_logs_team").on("egress_logs").columns(["team_id", "changed_at"]).execute();
    await db.schema
      .createTable("egress_lines")
      .addColumn("sandbox_id", "text", (column) => column.notNull().references("egress_logs.sandbox_id").onDelete("cascade"))
      .addColumn("position", "bigint", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("protocol", "text", (column) => column.notNull())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("address", "text", (column) => column.notNull())
      .addColumn("port", "integer", (column) => column.notNull())
      .addColumn("sent", "bigint", (column) => column.notNull())
      .addColumn("received", "bigint", (column) => column.notNull())
      // 1: allowed.
      .addColumn("is_allowed", "integer", (column) => column.notNull())
      .addColumn("rule", "text", (column) => column.notNull())
      // How many attempts the line stands for.
      .addColumn("count", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("egress_lines_pk", ["sandbox_id", "position"])
      .execute();
    // The last batch of each process of a node that is stored, so that one that is delivered again is found.
    await db.schema
      .createTable("egress_sources")
      .addColumn("source", "text", (column) => column.primaryKey())
      .addColumn("number", "bigint", (column) => column.notNull())
      .addColumn("changed_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("team_egress")
      .addColumn("team_id", "text", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("sent", "bigint", (column) => column.notNull())
      .addColumn("received", "bigint", (column) => column.notNull())
      .addColumn("connections", "bigint", (column) => column.notNull())
      .addColumn("refused", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("team_egress_pk", ["team_id", "at"])
      .execute();
    await db.schema.createIndex("team_egress_age").on("team_egress").column("at").execute();
  },
};

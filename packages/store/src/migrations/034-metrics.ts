import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * What sandboxes and teams use. A row stands for `step_ms` from `at` on: it is a measurement, or the summary of several older ones. Rows have
 * no foreign keys, because they are written in large batches, and age bounds them in any case.
 */
export const metrics: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("sandbox_metrics")
      .addColumn("sandbox_id", "text", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("step_ms", "integer", (column) => column.notNull())
      .addColumn("cpu_count", "integer", (column) => column.notNull())
      // Hundredths of a percent.
      .addColumn("cpu_used", "integer", (column) => column.notNull())
      .addColumn("memory_used", "bigint", (column) => column.notNull())
      .addColumn("memory_total", "bigint", (column) => column.notNull())
      .addColumn("memory_cache", "bigint", (column) => column.notNull())
      .addColumn("disk_used", "bigint", (column) => column.notNull())
      .addColumn("disk_total", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("sandbox_metrics_pk", ["sandbox_id", "at", "step_ms"])
      .execute();
    await db.schema.createIndex("sandbox_metrics_age").on("sandbox_metrics").columns(["step_ms", "at"]).execute();
    await db.schema
      .createTable("team_metrics")
      .addColumn("team_id", "text", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("step_ms", "integer", (column) => column.notNull())
      // The most that ran at once.
      .addColumn("concurrent", "integer", (column) => column.notNull())
      .addColumn("starts", "integer", (column) => column.notNull())
      .addPrimaryKeyConstraint("team_metrics_pk", ["team_id", "at", "step_ms"])
      .execute();
    await db.schema.createIndex("team_metrics_age").on("team_metrics").columns(["step_ms", "at"]).execute();
  },
};

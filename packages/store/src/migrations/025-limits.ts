import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Tiers of limits, the tier and the own limits of each team, and an index over what is counted. */
export const limits: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("tiers")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("limits", "text", (column) => column.notNull())
      .addColumn("updated_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("team_limits")
      .addColumn("team_id", "text", (column) => column.primaryKey().references("teams.id").onDelete("cascade"))
      .addColumn("tier", "text", (column) => column.references("tiers.name"))
      .addColumn("overrides", "text", (column) => column.notNull())
      .addColumn("updated_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("team_limits_tier").on("team_limits").column("tier").execute();
    // With the sizes, so that a sum reads the index alone.
    await db.schema.dropIndex("sandboxes_team_state").execute();
    await db.schema
      .createIndex("sandboxes_team_state")
      .on("sandboxes")
      .columns(["team_id", "state", "cpu_count", "memory_mb", "disk_size_mb"])
      .execute();
    await db.schema.createIndex("images_team_kind").on("images").columns(["team_id", "kind", "state"]).execute();
  },
};

import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The volumes of teams, which sandboxes mount them, and the mounts that snapshots pass on. A deleted volume's name is free at once. */
export const volumes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("volumes")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("node_id", "text", (column) => column.notNull())
      .addColumn("size_mb", "integer", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("state_changed_at", "bigint", (column) => column.notNull())
      .addColumn("owner", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createIndex("volumes_name")
      .unique()
      .on("volumes")
      .columns(["team_id", "name"])
      .where(sql.ref("state"), "!=", sql.lit("deleting"))
      .execute();
    for (const state of ["creating", "deleting"]) {
      await db.schema
        .createIndex(`volumes_${state}`)
        .on("volumes")
        .columns(["state_changed_at", "id"])
        .where(sql.ref("state"), "=", sql.lit(state))
        .execute();
    }
    await db.schema
      .createTable("volume_mounts")
      .addColumn("sandbox_id", "text", (column) => column.notNull())
      .addColumn("path", "text", (column) => column.notNull())
      .addColumn("volume_id", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("volume_mounts_pk", ["sandbox_id", "path"])
      .execute();
    await db.schema.createIndex("volume_mounts_volume").on("volume_mounts").column("volume_id").execute();
    for (const table of ["sandboxes", "builds"]) await db.schema.alterTable(table).addColumn("volume_mounts", "text").execute();
  },
};

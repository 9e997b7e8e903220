import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** The secrets of teams. Their values are sealed; `key_id` names the key. */
export const secrets: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("secrets")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("version", "integer", (column) => column.notNull())
      .addColumn("metadata", "text", (column) => column.notNull())
      .addColumn("sealed", "text", (column) => column.notNull())
      .addColumn("key_id", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("updated_at", "bigint", (column) => column.notNull())
      .addUniqueConstraint("secrets_name", ["team_id", "name"])
      .execute();
    await db.schema.createIndex("secrets_list").on("secrets").columns(["team_id", "created_at desc", "id asc"]).execute();
  },
};

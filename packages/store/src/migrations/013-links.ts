import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Links to ports of sandboxes. They go with their sandbox. */
export const links: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("sandbox_links")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("sandbox_id", "text", (column) => column.notNull().references("sandboxes.id").onDelete("cascade"))
      .addColumn("port", "integer", (column) => column.notNull())
      .addColumn("path", "text", (column) => column.notNull())
      .addColumn("methods", "text")
      .addColumn("token_hash", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("expires_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("sandbox_links_list").on("sandbox_links").columns(["sandbox_id", "created_at", "id"]).execute();
  },
};

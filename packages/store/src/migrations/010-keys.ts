import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Who made a key, when it expires, whether it comes from the secrets file, and what the operator set the nodes to. */
export const keys: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ["api_keys", "access_tokens"]) {
      await db.schema.alterTable(table).addColumn("expires_at", "bigint").execute();
      await db.schema
        .alterTable(table)
        .addColumn("is_seeded", "integer", (column) => column.notNull().defaultTo(0))
        .execute();
      await db.schema.alterTable(table).addColumn("deleted_at", "bigint").execute();
      // Until now their name told the keys of the secrets file, and nothing could give this name to another key.
      await sql`update ${sql.table(table)} set is_seeded = 1 where name = ${"made at first start"}`.execute(db);
    }
    await db.schema.alterTable("api_keys").addColumn("created_by", "text").execute();
    await db.schema
      .createTable("node_statuses")
      .addColumn("node_id", "text", (column) => column.primaryKey())
      .addColumn("status", "text", (column) => column.notNull())
      .addColumn("changed_at", "bigint", (column) => column.notNull())
      .execute();
  },
};

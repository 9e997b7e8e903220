import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Which templates come with the platform, and what they are for. */
export const templates: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("templates")
      .addColumn("is_default", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable("templates").addColumn("description", "text").execute();
  },
};

import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Whether a team is blocked or banned, and why. */
export const standing: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("teams")
      .addColumn("standing", "text", (column) => column.notNull().defaultTo("active"))
      .execute();
    await db.schema.alterTable("teams").addColumn("standing_reason", "text").execute();
  },
};

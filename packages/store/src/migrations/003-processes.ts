import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Control processes that are alive, by a number that each raises. */
export const processes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("processes")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("beat", "bigint", (column) => column.notNull())
      .addColumn("started_at", "bigint", (column) => column.notNull())
      .execute();
  },
};

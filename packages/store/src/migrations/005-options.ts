import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** A sandbox's options are one JSON value. A new option needs no column. */
export const options: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("sandboxes")
      .addColumn("options", "text", (column) => column.notNull().defaultTo("{}"))
      .execute();
    await sql`update sandboxes set options = case allow_internet_access when 0 then '{"allowInternetAccess":false}' else '{"allowInternetAccess":true}' end
      where allow_internet_access is not null`.execute(db);
    await db.schema.alterTable("sandboxes").dropColumn("allow_internet_access").execute();
  },
};

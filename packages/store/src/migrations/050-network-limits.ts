import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** How much of the network the sandboxes of a template may use, as JSON. Null: nothing is chosen. */
export const networkLimits: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("templates").addColumn("network_limits", "text").execute();
  },
};

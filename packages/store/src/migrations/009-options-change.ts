import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The options of a sandbox can be changed. Until its node has them, the row says so. */
export const optionsChange: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("sandboxes").addColumn("options_change", "text").execute();
    await db.schema
      .createIndex("sandboxes_options_change")
      .on("sandboxes")
      .column("node_id")
      .where(sql.ref("options_change"), "is not", null)
      .execute();
  },
};

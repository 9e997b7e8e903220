import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Sandboxes that ended although nobody had asked for it, and are paused for a while. */
export const kept: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("sandboxes").addColumn("pause_reason", "text").execute();
    await db.schema.alterTable("sandboxes").addColumn("keep_until", "bigint").execute();
    await db.schema
      .createIndex("sandboxes_keep_until")
      .on("sandboxes")
      .column("keep_until")
      .where(sql.ref("state"), "=", sql.lit("paused"))
      .execute();
  },
};

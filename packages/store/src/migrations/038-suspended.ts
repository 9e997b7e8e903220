import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Sandboxes that an orderly shutdown paused keep what was left of their timeout, with which the next start resumes them. */
export const suspended: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("sandboxes").addColumn("resume_ms", "bigint").execute();
    await db.schema.alterTable("sandboxes").addColumn("suspended_by", "text").execute();
    await db.schema.createIndex("sandboxes_suspended").on("sandboxes").column("id").where(sql.ref("resume_ms"), "is not", null).execute();
  },
};

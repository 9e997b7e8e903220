import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Which user a subject of an identity provider is. */
export const providerUsers: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("provider_users")
      .addColumn("issuer", "text", (column) => column.notNull())
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("seen_issued_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("provider_users_pk", ["issuer", "subject"])
      .execute();
    await db.schema.createIndex("provider_users_user").on("provider_users").columns(["user_id"]).execute();
  },
};

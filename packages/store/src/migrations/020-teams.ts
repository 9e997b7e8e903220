import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Roles of members, invitations, deleted teams, and what a key or token may do. */
export const teams: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("teams").addColumn("deleted_at", "bigint").execute();
    await db.schema.alterTable("users").addColumn("email", "text").execute();
    // The only user until now is the one of the first start.
    await db.schema
      .alterTable("team_members")
      .addColumn("role", "text", (column) => column.notNull().defaultTo("owner"))
      .execute();
    await db.schema
      .alterTable("team_members")
      .addColumn("created_at", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.createIndex("team_members_team").on("team_members").column("team_id").execute();
    for (const table of ["api_keys", "access_tokens"]) await db.schema.alterTable(table).addColumn("scopes", "text").execute();
    await db.schema.alterTable("api_keys").addColumn("sandbox_metadata", "text").execute();
    await db.schema.alterTable("api_keys").addColumn("member_id", "text").execute();
    await createInvitations(db);
  },
};

async function createInvitations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("invitations")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
    .addColumn("email", "text")
    .addColumn("role", "text", (column) => column.notNull())
    .addColumn("token_hash", "text", (column) => column.notNull().unique())
    .addColumn("created_by", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("invitations_team").on("invitations").column("team_id").execute();
}

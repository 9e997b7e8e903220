import { type ColumnDefinitionBuilder, type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const id = (column: ColumnDefinitionBuilder) => column.primaryKey();
const required = (column: ColumnDefinitionBuilder) => column.notNull();

export const init: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createIdentityTables(db);
    await createTemplateTables(db);
    await createSandboxTable(db);
  },
};

async function createIdentityTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("teams")
    .addColumn("id", "text", id)
    .addColumn("slug", "text", (column) => column.notNull().unique())
    .addColumn("name", "text", required)
    .addColumn("created_at", "bigint", required)
    .execute();
  await db.schema
    .createTable("users")
    .addColumn("id", "text", id)
    .addColumn("name", "text", required)
    .addColumn("created_at", "bigint", required)
    .execute();
  await db.schema
    .createTable("team_members")
    .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
    .addColumn("user_id", "text", (column) => column.notNull().references("users.id"))
    .addColumn("is_default", "integer", required)
    .addPrimaryKeyConstraint("team_members_pk", ["user_id", "team_id"])
    .execute();
  await createCredentialTable(db, { table: "api_keys", owner: "team_id", ownerTable: "teams" });
  await createCredentialTable(db, { table: "access_tokens", owner: "user_id", ownerTable: "users" });
}

async function createCredentialTable(db: Kysely<unknown>, names: { table: string; owner: string; ownerTable: string }): Promise<void> {
  await db.schema
    .createTable(names.table)
    .addColumn("id", "text", id)
    .addColumn(names.owner, "text", (column) => column.notNull().references(`${names.ownerTable}.id`))
    .addColumn("name", "text", required)
    .addColumn("hash", "text", (column) => column.notNull().unique())
    .addColumn("mask_length", "integer", required)
    .addColumn("mask_prefix", "text", required)
    .addColumn("mask_suffix", "text", required)
    .addColumn("created_at", "bigint", required)
    .addColumn("last_used_at", "bigint")
    .execute();
  await db.schema.createIndex(`${names.table}_owner`).on(names.table).column(names.owner).execute();
}

async function createTemplateTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("templates")
    .addColumn("id", "text", id)
    .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
    .addColumn("is_public", "integer", required)
    .addColumn("created_at", "bigint", required)
    .addColumn("updated_at", "bigint", required)
    .addColumn("last_spawned_at", "bigint")
    .addColumn("spawn_count", "bigint", (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema.createIndex("templates_team").on("templates").columns(["team_id", "created_at"]).execute();
  // A namespace is a team's slug; '' is the global one.
  await db.schema
    .createTable("template_aliases")
    .addColumn("namespace", "text", required)
    .addColumn("alias", "text", required)
    .addColumn("template_id", "text", (column) => column.notNull().references("templates.id"))
    .addColumn("created_at", "bigint", required)
    .addPrimaryKeyConstraint("template_aliases_pk", ["namespace", "alias"])
    .execute();
  await db.schema.createIndex("template_aliases_template").on("template_aliases").column("template_id").execute();
  await db.schema
    .createTable("builds")
    .addColumn("id", "text", id)
    .addColumn("template_id", "text", (column) => column.notNull().references("templates.id"))
    .addColumn("status", "text", required)
    .addColumn("cpu_count", "integer", required)
    .addColumn("memory_mb", "integer", required)
    .addColumn("disk_size_mb", "integer", required)
    .addColumn("layers", "text", required)
    .addColumn("default_user", "text", required)
    .addColumn("default_workdir", "text", required)
    .addColumn("agent_version", "text", required)
    .addColumn("created_at", "bigint", required)
    .addColumn("updated_at", "bigint", required)
    .addColumn("finished_at", "bigint")
    .execute();
  await db.schema.createIndex("builds_template").on("builds").columns(["template_id", "created_at"]).execute();
  // Append-only: the assignment with the highest position whose build is ready is the one in force.
  await db.schema
    .createTable("tag_assignments")
    .addColumn("template_id", "text", (column) => column.notNull().references("templates.id"))
    .addColumn("tag", "text", required)
    .addColumn("position", "integer", required)
    .addColumn("build_id", "text", (column) => column.notNull().references("builds.id"))
    .addColumn("assigned_at", "bigint", required)
    .addPrimaryKeyConstraint("tag_assignments_pk", ["template_id", "tag", "position"])
    .execute();
}

async function createSandboxTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("sandboxes")
    .addColumn("id", "text", id)
    .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
    .addColumn("template_id", "text", required)
    .addColumn("build_id", "text", required)
    .addColumn("alias", "text")
    .addColumn("state", "text", required)
    .addColumn("state_changed_at", "bigint", required)
    .addColumn("node_id", "text", required)
    .addColumn("node_url", "text", required)
    .addColumn("owner", "text", required)
    .addColumn("runtime", "text")
    .addColumn("agent_version", "text")
    .addColumn("created_at", "bigint", required)
    .addColumn("started_at", "bigint")
    .addColumn("end_at", "bigint")
    .addColumn("metadata", "text")
    .addColumn("cpu_count", "integer", required)
    .addColumn("memory_mb", "integer", required)
    .addColumn("disk_size_mb", "integer", required)
    .addColumn("allow_internet_access", "integer")
    .addColumn("auto_pause", "integer", required)
    .addColumn("auto_resume", "integer", required)
    .addColumn("ended_at", "bigint")
    .addColumn("end_reason", "text")
    .execute();
  // What expires next.
  await db.schema
    .createIndex("sandboxes_expiry")
    .on("sandboxes")
    .column("end_at")
    .where(sql.ref("state"), "=", sql.lit("running"))
    .execute();
  // What is on its way into or out of being. One index for each: SQLite does not use one over both for a search for either.
  for (const state of ["starting", "killing"]) {
    await db.schema
      .createIndex(`sandboxes_${state}`)
      .on("sandboxes")
      .column("state_changed_at")
      .where(sql.ref("state"), "=", sql.lit(state))
      .execute();
  }
  // The lists: newest first, ties by id; read backwards for oldest first.
  await db.schema.createIndex("sandboxes_list").on("sandboxes").columns(["team_id", "state", "started_at desc", "id asc"]).execute();
  await db.schema.createIndex("sandboxes_node").on("sandboxes").columns(["node_id", "state"]).execute();
  await db.schema
    .createIndex("sandboxes_ended")
    .on("sandboxes")
    .column("ended_at")
    .where(sql.ref("state"), "=", sql.lit("ended"))
    .execute();
}

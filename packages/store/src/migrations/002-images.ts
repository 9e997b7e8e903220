import { type ColumnDataType, type ColumnDefinitionBuilder, type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const required = (column: ColumnDefinitionBuilder) => column.notNull();

type Column = readonly [name: string, type: ColumnDataType, build?: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder];

/** Pause, resume, snapshots and forks; a journal of every change of state; answers that are given again for the same key. */
export const images: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await extendSandboxes(db);
    await extendTemplates(db);
    await createImageTable(db);
    await createJournal(db);
    await createIdempotencyTable(db);
    await createClusterTable(db);
  },
};

// One statement for each column: SQLite takes no more.
async function addColumns(db: Kysely<unknown>, table: string, columns: readonly Column[]): Promise<void> {
  for (const [name, type, build] of columns) await db.schema.alterTable(table).addColumn(name, type, build).execute();
}

async function extendSandboxes(db: Kysely<unknown>): Promise<void> {
  await addColumns(db, "sandboxes", [
    // Counts the changes of state: a decision that was made on an older one changes nothing.
    ["version", "integer", (column) => column.notNull().defaultTo(1)],
    // What lists show it as: 'running', 'paused' or nothing.
    ["listed", "text"],
    ["image_id", "text"],
    ["image_has_memory", "integer"],
    ["agent_unresponsive", "integer"],
    ["paused_at", "bigint"],
    ["auto_pause_memory", "integer", (column) => column.notNull().defaultTo(1)],
    // The time that it was created with, which it gets again when traffic wakes it.
    ["timeout_ms", "bigint", (column) => column.notNull().defaultTo(300_000)],
    // When its time is over and pausing it failed: not before this again.
    ["expire_not_before", "bigint"],
    ["end_actor", "text"],
  ]);
  await sql`update sandboxes set listed = 'running' where state = 'running'`.execute(db);
  await db.schema.dropIndex("sandboxes_list").execute();
  // The lists, newest first, ties by id, read backwards for oldest first: of one kind, and of both.
  await db.schema.createIndex("sandboxes_listed").on("sandboxes").columns(["team_id", "listed", "started_at desc", "id asc"]).execute();
  await db.schema
    .createIndex("sandboxes_listed_all")
    .on("sandboxes")
    .columns(["team_id", "started_at desc", "id asc"])
    .where(sql.ref("listed"), "is not", null)
    .execute();
  // How many a team runs.
  await db.schema.createIndex("sandboxes_team_state").on("sandboxes").columns(["team_id", "state"]).execute();
  await db.schema.createIndex("sandboxes_template").on("sandboxes").columns(["template_id", "state"]).execute();
  for (const state of ["snapshotting", "pausing", "copying", "resuming"]) {
    await db.schema
      .createIndex(`sandboxes_${state}`)
      .on("sandboxes")
      .column("state_changed_at")
      .where(sql.ref("state"), "=", sql.lit(state))
      .execute();
  }
}

async function extendTemplates(db: Kysely<unknown>): Promise<void> {
  await addColumns(db, "templates", [
    ["kind", "text", (column) => column.notNull().defaultTo("template")],
    ["deleted_at", "bigint"],
  ]);
  await db.schema.createIndex("templates_kind").on("templates").columns(["team_id", "kind", "created_at desc", "id asc"]).execute();
  await addColumns(db, "builds", [
    // Of snapshots: the image, the one node that has it, and the sandbox that it was taken from.
    ["image_id", "text"],
    ["image_has_memory", "integer"],
    ["node_id", "text"],
    ["source_sandbox_id", "text"],
  ]);
  await db.schema
    .createIndex("builds_source")
    .on("builds")
    .columns(["source_sandbox_id", "template_id"])
    .where(sql.ref("source_sandbox_id"), "is not", null)
    .execute();
}

async function createImageTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("images")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
    .addColumn("node_id", "text", required)
    .addColumn("sandbox_id", "text", required)
    .addColumn("kind", "text", required)
    .addColumn("state", "text", required)
    .addColumn("state_changed_at", "bigint", required)
    .addColumn("owner", "text", required)
    .addColumn("has_memory", "integer", required)
    .addColumn("size_bytes", "bigint", required)
    .addColumn("created_at", "bigint", required)
    .execute();
  await db.schema.createIndex("images_sandbox").on("images").column("sandbox_id").execute();
  for (const state of ["creating", "deleting"]) {
    await db.schema
      .createIndex(`images_${state}`)
      .on("images")
      .column("state_changed_at")
      .where(sql.ref("state"), "=", sql.lit(state))
      .execute();
  }
}

async function createJournal(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("sandbox_events")
    .addColumn("sandbox_id", "text", required)
    .addColumn("version", "integer", required)
    .addColumn("at", "bigint", required)
    .addColumn("from_state", "text")
    .addColumn("to_state", "text", required)
    .addColumn("event", "text", required)
    .addColumn("reason", "text")
    .addColumn("actor", "text", required)
    .addPrimaryKeyConstraint("sandbox_events_pk", ["sandbox_id", "version"])
    .execute();
}

async function createIdempotencyTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("idempotency_keys")
    .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
    .addColumn("key", "text", required)
    .addColumn("fingerprint", "text", required)
    .addColumn("owner", "text", required)
    .addColumn("created_at", "bigint", required)
    // What the operation makes, chosen before it begins.
    .addColumn("subjects", "text", required)
    .addColumn("status", "integer")
    .addColumn("body", "text")
    .addPrimaryKeyConstraint("idempotency_keys_pk", ["team_id", "key"])
    .execute();
  await db.schema.createIndex("idempotency_keys_age").on("idempotency_keys").column("created_at").execute();
}

/** One row. Nodes hold sandboxes for the cluster of this id, and answer no other. */
async function createClusterTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("cluster")
    .addColumn("only", "integer", (column) => column.primaryKey())
    .addColumn("id", "text", required)
    .execute();
}

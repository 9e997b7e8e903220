import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Builds that the platform carries out: what was requested, what it left, its log, and the files that clients uploaded for it. */
export const builds: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await extendBuilds(db);
    await db.schema
      .createTable("build_logs")
      .addColumn("build_id", "text", (column) => column.notNull().references("builds.id"))
      .addColumn("number", "integer", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("level", "integer", (column) => column.notNull())
      .addColumn("step", "text", (column) => column.notNull())
      .addColumn("message", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("build_logs_pk", ["build_id", "number"])
      .execute();
    // What a client uploaded for a COPY step, by the hash that the client gave it: shared by all templates of the team.
    await db.schema
      .createTable("build_files")
      .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("blob", "text", (column) => column.notNull())
      .addColumn("size_bytes", "bigint", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("last_used_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("build_files_pk", ["team_id", "hash"])
      .execute();
    await db.schema.createIndex("build_files_blob").on("build_files").column("blob").execute();
    await db.schema.createIndex("build_files_used").on("build_files").column("last_used_at").execute();
  },
};

async function extendBuilds(db: Kysely<unknown>): Promise<void> {
  const columns = [
    // JSON. What the client asked for when it started the build, without credentials. Null before that and after the end: it may be large.
    ["request", "text"],
    // JSON of `BuildContext` and `StartCommand`: what builds on top of this one, and sandboxes, go on from. Null for snapshots.
    ["context", "text"],
    ["start", "text"],
    // JSON `{message, step?}` of a build that failed.
    ["reason", "text"],
    // The API process that follows the build, and the node that carries it out or still has something of it.
    ["owner", "text"],
    ["builder_node_id", "text"],
    // When the client started it, and when a node first began it.
    ["started_at", "bigint"],
    ["began_at", "bigint"],
    // The only node that has the layers; null when every node has them.
    ["layers_node_id", "text"],
  ] as const;
  for (const [name, type] of columns) await db.schema.alterTable("builds").addColumn(name, type).execute();
  // `events_read`: how many events of its node have been stored. `is_legacy`: the client reads the log as strings.
  for (const name of ["attempts", "events_read", "is_legacy"]) {
    await db.schema
      .alterTable("builds")
      .addColumn(name, "integer", (column) => column.notNull().defaultTo(0))
      .execute();
  }
  await db.schema
    .createIndex("builds_held")
    .on("builds")
    .column("builder_node_id")
    .where(sql.ref("builder_node_id"), "is not", null)
    .execute();
  await db.schema.createIndex("tag_assignments_build").on("tag_assignments").column("build_id").execute();
  for (const status of ["waiting", "building"]) {
    await db.schema
      .createIndex(`builds_${status}`)
      .on("builds")
      .column("updated_at")
      .where(sql.ref("status"), "=", sql.lit(status))
      .execute();
  }
}

import { PlatformError } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { MIGRATIONS } from "./migrations/index.ts";
import type { Database } from "./tables.ts";

/**
 * Throws PlatformError("store_migration_failed") when a newer version has changed the tables. Changes nothing. Does not throw when the
 * database cannot be reached: opening it reports the reason.
 */
export async function refuseNewer(db: Kysely<Database>): Promise<void> {
  const newer = await stepsOfANewerVersion(db).catch(() => []);
  if (newer.length > 0) throw new PlatformError("store_migration_failed", newerMessage(newer));
}

/** Migrates the database to the tables of this version. Several processes may call this at the same time. Refuses a newer database. */
export async function migrate(db: Kysely<Database>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const newer = await stepsOfANewerVersion(db).catch(() => []);
  const failed = results?.find((result) => result.status === "Error")?.migrationName;
  const message =
    newer.length > 0 ? newerMessage(newer) : `the database could not be brought up to date${failed ? ` (step ${failed})` : ""}`;
  throw new PlatformError("store_migration_failed", message, { cause: error });
}

function newerMessage(steps: readonly string[]): string {
  return `the database was brought up to date by a newer version of the platform (${steps.join(", ")}), which this one does not understand: start that version again`;
}

async function stepsOfANewerVersion(db: Kysely<Database>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  return rows.map(({ name }) => name).filter((name) => !Object.hasOwn(MIGRATIONS, name));
}

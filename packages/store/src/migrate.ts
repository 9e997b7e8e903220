import { PlatformError } from "@skerry/base";
import type { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { MIGRATIONS } from "./migrations/index.ts";
import type { Database } from "./tables.ts";

/** Brings the database to this version's tables. Several processes may do it at once; a newer database is refused. */
export async function migrate(db: Kysely<Database>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find((result) => result.status === "Error")?.migrationName;
  throw new PlatformError("store_migration_failed", `the database could not be brought up to date${failed ? ` (step ${failed})` : ""}`, {
    cause: error,
  });
}

import { backup, DatabaseSync } from "node:sqlite";
import { PlatformError, runCommand } from "@skerry/base";

const COPY_MS = 3_600_000;

export type DatabaseKind = "sqlite" | "postgres";

export function databaseKindOf(url: string): DatabaseKind {
  return url.startsWith("sqlite:") ? "sqlite" : "postgres";
}

/** Writes a consistent copy of a database that is in use: a database of SQLite, or an archive of `pg_dump`. */
export async function copyDatabase(url: string, file: string): Promise<void> {
  if (databaseKindOf(url) === "postgres") {
    const { address, env } = withoutPassword(url);
    await runPostgresProgram("pg_dump", ["--format=custom", "--no-owner", "--no-privileges", `--file=${file}`, address], env);
    return;
  }
  const source = new DatabaseSync(url.slice("sqlite:".length), { readOnly: true, timeout: 15_000 });
  try {
    await backup(source, file);
  } finally {
    source.close();
  }
}

/** Fills an empty database of PostgreSQL from an archive of `pg_dump`. One transaction: a failure leaves it empty. */
export async function fillPostgres(url: string, file: string): Promise<void> {
  const { address, env } = withoutPassword(url);
  await runPostgresProgram(
    "pg_restore",
    ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", `--dbname=${address}`, file],
    env,
  );
}

async function runPostgresProgram(program: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  try {
    await runCommand(program, args, { env: { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", ...env }, timeoutMs: COPY_MS });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new PlatformError("config_invalid", `${program} is missing: install the client programs of PostgreSQL (postgresql-client)`);
  }
}

/** A command line is visible to every user of the host, so the password goes into the environment. */
function withoutPassword(url: string): { address: string; env: Readonly<Record<string, string>> } {
  const address = new URL(url);
  const password = decodeURIComponent(address.password);
  address.password = "";
  return { address: address.href, env: password === "" ? {} : { PGPASSWORD: password } };
}

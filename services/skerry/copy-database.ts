import { existsSync, realpathSync } from "node:fs";
import { chmod, rename } from "node:fs/promises";
import { PlatformError } from "@skerry/base";
import { copyDatabase, type DatabaseKind, databaseKindOf, fillPostgres, moveToNode, openStore } from "@skerry/store";
import { databaseUrlOf, parseServeConfig } from "./config.ts";
import { nodeIdOf } from "./node-host.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Writes a consistent copy of the configured database to a file. */
export async function copyPlatformDatabase(env: Environment, file: string): Promise<DatabaseKind> {
  const url = databaseUrlOf(parseServeConfig(env));
  await copyDatabase(url, file);
  return databaseKindOf(url);
}

/** Puts a copy in the place of the configured database, which must be empty, and gives what is in it to the node of the data folder. */
export async function restorePlatformDatabase(env: Environment, file: string): Promise<void> {
  const config = parseServeConfig(env);
  const url = databaseUrlOf(config);
  if (databaseKindOf(url) === "postgres") {
    await fillPostgres(url, file);
  } else {
    const path = url.slice("sqlite:".length);
    if (existsSync(path)) throw new PlatformError("config_invalid", `there is a database already: ${path}`);
    await chmod(file, 0o600);
    await rename(file, path);
  }
  // A backup of an earlier version gets the tables of this one.
  await (await openStore(url)).close();
  await moveToNode(url, { id: nodeIdOf(realpathSync(config.dataDir)), url: config.nodeUrl });
}

import { existsSync } from "node:fs";
import { findOwner } from "@skerry/api";
import { openStore } from "@skerry/store";
import { databaseUrlOf, parseServeConfig } from "./config.ts";

/** The team and user that own the contents of the configured database. Undefined if it is empty. */
export async function readOwner(
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ teamId: string; userId: string } | undefined> {
  const url = databaseUrlOf(parseServeConfig(env));
  if (url.startsWith("sqlite:") && !existsSync(url.slice("sqlite:".length))) return undefined;
  await using store = await openStore(url);
  return await findOwner(store);
}

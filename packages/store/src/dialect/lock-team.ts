import { PlatformError } from "@skerry/base";
import type { Kysely } from "kysely";
import type { Database } from "../tables.ts";
import type { DialectName } from "./json-contains.ts";

export type { DialectName };

/**
 * Locks a team until the end of the transaction. On SQLite, transactions never run at the same time anyway. Throws for a team that was
 * deleted, so nothing is added to it by a request that was admitted before.
 */
export async function lockTeam(tx: Kysely<Database>, dialect: DialectName, teamId: string): Promise<void> {
  const query = tx.selectFrom("teams").where("id", "=", teamId).select("deleted_at");
  const team = await (dialect === "sqlite" ? query : query.forNoKeyUpdate()).executeTakeFirst();
  if (typeof team?.deleted_at === "number") throw new PlatformError("team_deleted", "the team was deleted");
}

/** Locks what all teams share until the end of the transaction. */
export async function lockCluster(tx: Kysely<Database>, dialect: DialectName): Promise<void> {
  if (dialect === "sqlite") return;
  await tx.selectFrom("cluster").select("id").forNoKeyUpdate().execute();
}

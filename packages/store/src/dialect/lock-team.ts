import type { Kysely } from "kysely";
import type { Database } from "../tables.ts";
import type { DialectName } from "./json-contains.ts";

export type { DialectName };

/** Locks a team until the end of the transaction. On SQLite, transactions never run at the same time anyway. */
export async function lockTeam(tx: Kysely<Database>, dialect: DialectName, teamId: string): Promise<void> {
  if (dialect === "sqlite") return;
  await tx.selectFrom("teams").where("id", "=", teamId).select("id").forNoKeyUpdate().execute();
}

/** Locks what all teams share until the end of the transaction. */
export async function lockCluster(tx: Kysely<Database>, dialect: DialectName): Promise<void> {
  if (dialect === "sqlite") return;
  await tx.selectFrom("cluster").select("id").forNoKeyUpdate().execute();
}

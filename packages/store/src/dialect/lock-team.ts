import type { Kysely } from "kysely";
import type { Database } from "../tables.ts";
import type { DialectName } from "./json-contains.ts";

export type { DialectName };

/** Until the transaction ends, others who lock this team wait. On SQLite every transaction waits for every other anyway. */
export async function lockTeam(tx: Kysely<Database>, dialect: DialectName, teamId: string): Promise<void> {
  if (dialect === "sqlite") return;
  await tx.selectFrom("teams").where("id", "=", teamId).select("id").forNoKeyUpdate().execute();
}

import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import type { Database } from "./tables.ts";

/** The id of the cluster that this database belongs to. The first process that opens the database makes it. */
export async function readClusterId(db: Kysely<Database>): Promise<string> {
  await db
    .insertInto("cluster")
    .values({ only: 1, id: randomUUID() })
    .onConflict((conflict) => conflict.column("only").doNothing())
    .execute();
  return (await db.selectFrom("cluster").where("only", "=", 1).select("id").executeTakeFirstOrThrow()).id;
}

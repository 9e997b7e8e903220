import type { Kysely } from "kysely";
import type { Database } from "./tables.ts";

/** The heartbeats of API processes. A process is alive while its number grows; no clocks are compared. */
export class ProcessRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async beat(id: string, now: number): Promise<void> {
    await this.#db
      .insertInto("processes")
      .values({ id, beat: 1, started_at: now })
      .onConflict((conflict) => conflict.column("id").doUpdateSet((eb) => ({ beat: eb("processes.beat", "+", 1) })))
      .execute();
  }

  async list(): Promise<readonly { readonly id: string; readonly beat: number }[]> {
    return await this.#db.selectFrom("processes").select(["id", "beat"]).execute();
  }

  async forget(id: string): Promise<void> {
    await this.#db.deleteFrom("processes").where("id", "=", id).execute();
  }
}

import { type Kysely, sql } from "kysely";
import { type Image, type ImageState, imageFrom, imageRow, type NewImage } from "./image.ts";
import type { Database } from "./tables.ts";

/** Images that nodes have, or may have. An entry is there before its node is asked and until the node has let go of it. */
export class ImageRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Writes the entry in state `creating`. */
  async insert(image: NewImage): Promise<void> {
    await this.#db.insertInto("images").values(imageRow(image)).execute();
  }

  async find(id: string): Promise<Image | undefined> {
    const row = await this.#db.selectFrom("images").where("id", "=", id).selectAll().executeTakeFirst();
    return row && imageFrom(row);
  }

  /** Of no use any more: what is left of it on its node is to go. */
  async drop(id: string, now: number): Promise<void> {
    await this.#db.updateTable("images").set({ state: "deleting", state_changed_at: now }).where("id", "=", id).execute();
  }

  /** The node has nothing of it. */
  async forget(id: string): Promise<void> {
    await this.#db.deleteFrom("images").where("id", "=", id).where("state", "=", "deleting").execute();
  }

  /** Those that a sandbox is or was kept in. */
  async listOfPauses(sandboxId: string): Promise<readonly Image[]> {
    const rows = await this.#db.selectFrom("images").where("sandbox_id", "=", sandboxId).where("kind", "=", "pause").selectAll().execute();
    return rows.map(imageFrom);
  }

  async listUnsettled(state: Exclude<ImageState, "ready">, limit: number): Promise<readonly Image[]> {
    const rows = await this.#db
      .selectFrom("images")
      .where("state", "=", sql.lit(state))
      .orderBy("state_changed_at")
      .limit(limit)
      .selectAll()
      .execute();
    return rows.map(imageFrom);
  }

  /** Which of these ids have an entry. */
  async filterKnown(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const known = new Set<string>();
    for (let from = 0; from < ids.length; from += 500) {
      const rows = await this.#db
        .selectFrom("images")
        .where("id", "in", ids.slice(from, from + 500))
        .select("id")
        .execute();
      for (const row of rows) known.add(row.id);
    }
    return known;
  }
}

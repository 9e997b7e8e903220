import { type Kysely, sql } from "kysely";
import { type Image, type ImageState, imageFrom, imageRow, type NewImage } from "./image.ts";
import type { Database } from "./tables.ts";

/** Images that nodes have, or may have. A row exists before its node is called, and until the node has deleted the image. */
export class ImageRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Inserts a row in the state `creating`. */
  async insert(image: NewImage): Promise<void> {
    await this.#db.insertInto("images").values(imageRow(image)).execute();
  }

  async find(id: string): Promise<Image | undefined> {
    const row = await this.#db.selectFrom("images").where("id", "=", id).selectAll().executeTakeFirst();
    return row && imageFrom(row);
  }

  /** Moves an image to `deleting`: its node is to delete it. */
  async drop(id: string, now: number): Promise<void> {
    await this.#db.updateTable("images").set({ state: "deleting", state_changed_at: now }).where("id", "=", id).execute();
  }

  /** Deletes the row, when the node has nothing of the image any more. */
  async forget(id: string): Promise<void> {
    await this.#db.deleteFrom("images").where("id", "=", id).where("state", "=", "deleting").execute();
  }

  /** The images of a sandbox, past and present. */
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

  /** Returns those of the ids that have a row. */
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

import type { Kysely } from "kysely";
import type { BuildRequest } from "./build.ts";
import { type DialectName, lockCluster } from "./dialect/lock-team.ts";
import type { Database } from "./tables.ts";

/** What a client uploaded for a COPY step. All templates of its team share it. */
export interface BuildFile {
  readonly teamId: string;
  /** The hash that the client gave the files. */
  readonly hash: string;
  readonly blob: string;
  readonly sizeBytes: number;
}

export class BuildFileRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async find(teamId: string, hash: string): Promise<BuildFile | undefined> {
    const row = await this.#db
      .selectFrom("build_files")
      .where("team_id", "=", teamId)
      .where("hash", "=", hash)
      .selectAll()
      .executeTakeFirst();
    return row && { teamId: row.team_id, hash: row.hash, blob: row.blob, sizeBytes: row.size_bytes };
  }

  /** Marks files as used, so that they are kept. */
  async touch(teamId: string, hashes: readonly string[], now: number): Promise<void> {
    if (hashes.length === 0) return;
    await this.#db
      .updateTable("build_files")
      .set({ last_used_at: now })
      .where("team_id", "=", teamId)
      .where("hash", "in", hashes)
      .execute();
  }

  /**
   * Records an upload, in the place of an earlier one of the same hash. Returns false and changes nothing when its blob does not exist any
   * more: another process may have removed it as one that nothing refers to.
   */
  async put(file: BuildFile, options: { readonly now: number; readonly exists: () => Promise<boolean> }): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockCluster(tx, this.#dialect);
      if (!(await options.exists())) return false;
      const values = { blob: file.blob, size_bytes: file.sizeBytes, created_at: options.now, last_used_at: options.now };
      await tx
        .insertInto("build_files")
        .values({ team_id: file.teamId, hash: file.hash, ...values })
        .onConflict((conflict) => conflict.columns(["team_id", "hash"]).doUpdateSet(values))
        .execute();
      return true;
    });
  }

  /** Deletes the rows of files that were not used since `before`. */
  async forgetUnused(before: number): Promise<number> {
    const deleted = await this.#db.deleteFrom("build_files").where("last_used_at", "<", before).executeTakeFirst();
    return Number(deleted.numDeletedRows);
  }

  /** Those of the blobs that no upload and no build refers to. */
  async filterUnused(blobs: readonly string[]): Promise<readonly string[]> {
    return await unused(this.#db, blobs);
  }

  /** Runs `remove` unless something refers to the blob. Nothing can begin to refer to it meanwhile. */
  async removeUnused(blob: string, remove: () => Promise<void>): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockCluster(tx, this.#dialect);
      if ((await unused(tx, [blob])).length === 0) return false;
      await remove();
      return true;
    });
  }
}

/** A build keeps the blobs of its steps until it has ended. */
async function unused(db: Kysely<Database>, blobs: readonly string[]): Promise<readonly string[]> {
  if (blobs.length === 0) return [];
  const building = await db
    .selectFrom("builds")
    .where("status", "=", "building")
    .where("request", "is not", null)
    .select("request")
    .execute();
  const needed = new Set(
    building.flatMap(({ request }) => (JSON.parse(request ?? "") as BuildRequest).steps.map(({ archive }) => archive)),
  );
  const rows = await db.selectFrom("build_files").where("blob", "in", blobs).select("blob").execute();
  for (const { blob } of rows) needed.add(blob);
  return blobs.filter((blob) => !needed.has(blob));
}

import type { Kysely, Selectable } from "kysely";
import type { Credential } from "./identity.ts";
import type { Database } from "./tables.ts";

/** An API key as its team sees it. */
export interface ListedKey extends Omit<Credential, "hash" | "isSeeded"> {
  readonly createdBy: string | null;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
}

/** Changes to the keys of teams and to the access tokens of users. A change takes effect with the next request of every process. */
export class KeyRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** A team's keys, oldest first. */
  async listOfTeam(teamId: string): Promise<readonly ListedKey[]> {
    const rows = await this.#db
      .selectFrom("api_keys")
      .where("team_id", "=", teamId)
      .where("deleted_at", "is", null)
      .selectAll()
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    return rows.map(listedKeyFrom);
  }

  /** Returns whether the team has such a key. */
  async rename(teamId: string, keyId: string, name: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("api_keys")
      .set({ name })
      .where("id", "=", keyId)
      .where("team_id", "=", teamId)
      .where("deleted_at", "is", null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Returns whether the team had such a key. */
  async removeKey(teamId: string, keyId: string, now: number): Promise<boolean> {
    const owned = { table: "api_keys", id: keyId, owner: { column: "team_id", id: teamId } } as const;
    return await this.#remove(owned, now);
  }

  /** Returns whether the user had such a token. */
  async removeToken(userId: string, tokenId: string, now: number): Promise<boolean> {
    const owned = { table: "access_tokens", id: tokenId, owner: { column: "user_id", id: userId } } as const;
    return await this.#remove(owned, now);
  }

  async #remove(
    which: { table: "api_keys" | "access_tokens"; id: string; owner: { column: "team_id" | "user_id"; id: string } },
    now: number,
  ): Promise<boolean> {
    const { ref } = this.#db.dynamic;
    const { numDeletedRows } = await this.#db
      .deleteFrom(which.table)
      .where("id", "=", which.id)
      .where(ref<never>(which.owner.column), "=", which.owner.id)
      .where("is_seeded", "=", 0)
      .executeTakeFirstOrThrow();
    if (numDeletedRows > 0n) return true;
    const { numUpdatedRows } = await this.#db
      .updateTable(which.table)
      .set({ deleted_at: now })
      .where("id", "=", which.id)
      .where(ref<never>(which.owner.column), "=", which.owner.id)
      .where("deleted_at", "is", null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }
}

function listedKeyFrom(row: Selectable<Database["api_keys"]>): ListedKey {
  return {
    id: row.id,
    name: row.name,
    mask: { length: row.mask_length, prefix: row.mask_prefix, suffix: row.mask_suffix },
    createdAt: row.created_at,
    createdBy: row.created_by,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
  };
}

import type { Kysely, Selectable } from "kysely";
import { recordEvent } from "./events/record-event.ts";
import { type Credential, scopesFrom } from "./identity.ts";
import type { CredentialTable, Database } from "./tables.ts";

/** An API key as its team sees it. */
export interface ListedKey extends Omit<Credential, "hash" | "isSeeded"> {
  readonly createdBy: string | null;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
  readonly scopes: readonly string[] | null;
  readonly sandboxMetadata: Readonly<Record<string, string>> | null;
  readonly memberId: string | null;
}

/** An access token as its user sees it. */
export interface ListedToken extends Omit<Credential, "hash" | "isSeeded"> {
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
  readonly scopes: readonly string[] | null;
}

/** One key of a team, and, if it may be only a key that a certain user made, this user. */
export interface OwnedKey {
  readonly teamId: string;
  readonly keyId: string;
  readonly madeBy?: string | undefined;
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

  /** A user's access tokens, oldest first. */
  async listOfUser(userId: string): Promise<readonly ListedToken[]> {
    const rows = await this.#db
      .selectFrom("access_tokens")
      .where("user_id", "=", userId)
      .where("deleted_at", "is", null)
      .selectAll()
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    return rows.map(listedFrom);
  }

  /** Whether the team has such a key. */
  async has({ teamId, keyId, madeBy }: OwnedKey): Promise<boolean> {
    let query = this.#db.selectFrom("api_keys").where("id", "=", keyId).where("team_id", "=", teamId).where("deleted_at", "is", null);
    if (madeBy !== undefined) query = query.where("created_by", "=", madeBy);
    return (await query.select("id").executeTakeFirst()) !== undefined;
  }

  /** Returns whether the team has such a key. */
  async rename(teamId: string, keyId: string, { name, now }: { readonly name: string; readonly now: number }): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const { numUpdatedRows } = await tx
        .updateTable("api_keys")
        .set({ name })
        .where("id", "=", keyId)
        .where("team_id", "=", teamId)
        .where("deleted_at", "is", null)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return false;
      await recordEvent(tx, { type: "key.lifecycle.updated", teamId, subjectId: keyId, at: now, facts: { name } });
      return true;
    });
  }

  /** Returns whether the team had such a key. */
  async removeKey(teamId: string, keyId: string, now: number): Promise<boolean> {
    const owned = { table: "api_keys", id: keyId, owner: { column: "team_id", id: teamId } } as const;
    return await this.#db.transaction().execute(async (tx) => {
      if (!(await remove(tx, owned, now))) return false;
      await recordEvent(tx, { type: "key.lifecycle.deleted", teamId, subjectId: keyId, at: now, facts: {} });
      return true;
    });
  }

  /** Returns whether the user had such a token. */
  async removeToken(userId: string, tokenId: string, now: number): Promise<boolean> {
    const owned = { table: "access_tokens", id: tokenId, owner: { column: "user_id", id: userId } } as const;
    return await remove(this.#db, owned, now);
  }
}

interface Owned {
  readonly table: "api_keys" | "access_tokens";
  readonly id: string;
  readonly owner: { readonly column: "team_id" | "user_id"; readonly id: string };
}

async function remove(db: Kysely<Database>, which: Owned, now: number): Promise<boolean> {
  const { ref } = db.dynamic;
  const { numDeletedRows } = await db
    .deleteFrom(which.table)
    .where("id", "=", which.id)
    .where(ref<never>(which.owner.column), "=", which.owner.id)
    .where("is_seeded", "=", 0)
    .executeTakeFirstOrThrow();
  if (numDeletedRows > 0n) return true;
  const { numUpdatedRows } = await db
    .updateTable(which.table)
    .set({ deleted_at: now })
    .where("id", "=", which.id)
    .where(ref<never>(which.owner.column), "=", which.owner.id)
    .where("deleted_at", "is", null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

function listedKeyFrom(row: Selectable<Database["api_keys"]>): ListedKey {
  return {
    ...listedFrom(row),
    createdBy: row.created_by,
    sandboxMetadata: row.sandbox_metadata === null ? null : JSON.parse(row.sandbox_metadata),
    memberId: row.member_id,
  };
}

function listedFrom(row: Selectable<CredentialTable>): ListedToken {
  return {
    id: row.id,
    name: row.name,
    mask: { length: row.mask_length, prefix: row.mask_prefix, suffix: row.mask_suffix },
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    scopes: scopesFrom(row.scopes),
  };
}

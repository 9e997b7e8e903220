import type { Kysely, Selectable } from "kysely";
import type { CredentialTable, Database } from "./tables.ts";

export interface Team {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
}

/** A key or token as it is stored: its hash, and the part that may be shown. */
export interface Credential {
  readonly id: string;
  readonly name: string;
  readonly hash: string;
  readonly mask: { readonly length: number; readonly prefix: string; readonly suffix: string };
  readonly createdAt: number;
  /** From this time on it is refused. */
  readonly expiresAt?: number | null;
  /** Whether it comes from the secrets file of the platform. */
  readonly isSeeded?: boolean;
}

export interface KeyOwner {
  readonly keyId: string;
  readonly team: Team;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
}

export interface TokenUser {
  readonly userId: string;
  readonly expiresAt: number | null;
}

export interface Membership {
  readonly team: Team;
  readonly isDefault: boolean;
}

/** Teams and users, with the keys and tokens that authenticate them. */
export class IdentityRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async putTeam(team: Team & { readonly createdAt: number }): Promise<void> {
    await this.#db
      .insertInto("teams")
      .values({ id: team.id, slug: team.slug, name: team.name, created_at: team.createdAt })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ slug: team.slug, name: team.name }))
      .execute();
  }

  async putUser(user: { readonly id: string; readonly name: string; readonly createdAt: number }): Promise<void> {
    await this.#db
      .insertInto("users")
      .values({ id: user.id, name: user.name, created_at: user.createdAt })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ name: user.name }))
      .execute();
  }

  async putMembership(membership: { readonly teamId: string; readonly userId: string; readonly isDefault: boolean }): Promise<void> {
    const is_default = membership.isDefault ? 1 : 0;
    await this.#db
      .insertInto("team_members")
      .values({ team_id: membership.teamId, user_id: membership.userId, is_default })
      .onConflict((conflict) => conflict.columns(["user_id", "team_id"]).doUpdateSet({ is_default }))
      .execute();
  }

  /** Adds a key. An existing key with the same hash stays unchanged, also a deleted one of the secrets file. */
  async addApiKey(key: Credential & { readonly teamId: string; readonly createdBy?: string | undefined }): Promise<void> {
    await this.#db
      .insertInto("api_keys")
      .values({ ...credentialRow(key), team_id: key.teamId, created_by: key.createdBy ?? null })
      .onConflict((conflict) => conflict.column("hash").doNothing())
      .execute();
  }

  async addAccessToken(token: Credential & { readonly userId: string }): Promise<void> {
    await this.#db
      .insertInto("access_tokens")
      .values({ ...credentialRow(token), user_id: token.userId })
      .onConflict((conflict) => conflict.column("hash").doNothing())
      .execute();
  }

  /** Removes a team's keys that came from the secrets file, except the one with this hash. */
  async dropOtherSeededKeys(keep: { readonly teamId: string; readonly hash: string }): Promise<void> {
    await this.#db
      .deleteFrom("api_keys")
      .where("team_id", "=", keep.teamId)
      .where("is_seeded", "=", 1)
      .where("hash", "!=", keep.hash)
      .execute();
  }

  /** Removes a user's access tokens that came from the secrets file, except the one with this hash. */
  async dropOtherSeededTokens(keep: { readonly userId: string; readonly hash: string }): Promise<void> {
    await this.#db
      .deleteFrom("access_tokens")
      .where("user_id", "=", keep.userId)
      .where("is_seeded", "=", 1)
      .where("hash", "!=", keep.hash)
      .execute();
  }

  /** The owner of a key. Also of an expired key, so that its holder learns why it is refused. */
  async findKeyOwner(hash: string): Promise<KeyOwner | undefined> {
    const row = await this.#db
      .selectFrom("api_keys")
      .innerJoin("teams", "teams.id", "api_keys.team_id")
      .where("api_keys.hash", "=", hash)
      .where("api_keys.deleted_at", "is", null)
      .select(["api_keys.id as key_id", "api_keys.last_used_at", "api_keys.expires_at", "teams.id", "teams.slug", "teams.name"])
      .executeTakeFirst();
    if (!row) return undefined;
    const team = { id: row.id, slug: row.slug, name: row.name };
    return { keyId: row.key_id, team, lastUsedAt: row.last_used_at, expiresAt: row.expires_at };
  }

  /** Records a use, unless a use at `unlessSince` or later is recorded. */
  async touchKey(keyId: string, at: number, unlessSince = at): Promise<void> {
    await this.#db
      .updateTable("api_keys")
      .set({ last_used_at: at })
      .where("id", "=", keyId)
      .where((eb) => eb.or([eb("last_used_at", "is", null), eb("last_used_at", "<", unlessSince)]))
      .execute();
  }

  async findTokenUser(hash: string): Promise<TokenUser | undefined> {
    const row = await this.#db
      .selectFrom("access_tokens")
      .where("hash", "=", hash)
      .where("deleted_at", "is", null)
      .select(["user_id", "expires_at"])
      .executeTakeFirst();
    return row && { userId: row.user_id, expiresAt: row.expires_at };
  }

  async findTeam(id: string): Promise<Team | undefined> {
    return await this.#db.selectFrom("teams").where("id", "=", id).select(["id", "slug", "name"]).executeTakeFirst();
  }

  async findTeamBySlug(slug: string): Promise<Team | undefined> {
    return await this.#db.selectFrom("teams").where("slug", "=", slug).select(["id", "slug", "name"]).executeTakeFirst();
  }

  /** The first member of the team. */
  async findFirstMember(teamId: string): Promise<{ readonly userId: string } | undefined> {
    const row = await this.#db
      .selectFrom("team_members")
      .innerJoin("users", "users.id", "team_members.user_id")
      .where("team_members.team_id", "=", teamId)
      .select("users.id")
      .orderBy("users.created_at")
      .orderBy("users.id")
      .executeTakeFirst();
    return row && { userId: row.id };
  }

  async listMemberships(userId: string): Promise<readonly Membership[]> {
    const rows = await this.#db
      .selectFrom("team_members")
      .innerJoin("teams", "teams.id", "team_members.team_id")
      .where("team_members.user_id", "=", userId)
      .select(["teams.id", "teams.slug", "teams.name", "team_members.is_default"])
      .orderBy("team_members.is_default", "desc")
      .orderBy("teams.created_at")
      .orderBy("teams.id")
      .execute();
    return rows.map((row) => ({ team: { id: row.id, slug: row.slug, name: row.name }, isDefault: row.is_default === 1 }));
  }
}

function credentialRow(credential: Credential): Selectable<CredentialTable> {
  return {
    id: credential.id,
    name: credential.name,
    hash: credential.hash,
    mask_length: credential.mask.length,
    mask_prefix: credential.mask.prefix,
    mask_suffix: credential.mask.suffix,
    created_at: credential.createdAt,
    last_used_at: null,
    expires_at: credential.expiresAt ?? null,
    is_seeded: credential.isSeeded ? 1 : 0,
    deleted_at: null,
  };
}

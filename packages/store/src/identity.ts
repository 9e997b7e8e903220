import type { Kysely, Selectable } from "kysely";
import { recordEvent } from "./events/record-event.ts";
import type { CredentialTable, Database } from "./tables.ts";

export const ROLES = ["owner", "admin", "developer", "viewer"] as const;
export type Role = (typeof ROLES)[number];

/** Whether the operator blocked or banned a team. */
export type TeamStanding = "active" | "blocked" | "banned";

export interface Team {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  /** Absent for a team that is being added, which is `active`. */
  readonly standing?: TeamStanding;
  readonly standingReason?: string | null;
}

export const TEAM_COLUMNS = ["teams.id", "teams.slug", "teams.name", "teams.standing", "teams.standing_reason"] as const;

export function teamFrom(row: { id: string; slug: string; name: string; standing: string; standing_reason: string | null }): Team {
  const { id, slug, name, standing, standing_reason } = row;
  return { id, slug, name, ...(standing === "active" ? {} : { standing: standing as TeamStanding, standingReason: standing_reason }) };
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
  /** Absent or null: everything that its owner may do. */
  readonly scopes?: readonly string[] | null;
}

export interface NewApiKey extends Credential {
  readonly teamId: string;
  readonly createdBy?: string | undefined;
  /** The key reaches only sandboxes with this metadata. Absent or null: all of the team. */
  readonly sandboxMetadata?: Readonly<Record<string, string>> | null;
  /** The member who signs in with this key. */
  readonly memberId?: string | undefined;
}

export type CredentialMask = Credential["mask"];

export interface KeyOwner {
  readonly keyId: string;
  readonly mask: CredentialMask;
  readonly team: Team;
  readonly scopes: readonly string[] | null;
  readonly sandboxMetadata: Readonly<Record<string, string>> | null;
  /** For the key of a member: the member's role now; undefined when the user has left the team. */
  readonly member: { readonly userId: string; readonly role: Role | undefined } | undefined;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
}

export interface TokenUser {
  readonly tokenId: string;
  readonly mask: CredentialMask;
  readonly userId: string;
  readonly scopes: readonly string[] | null;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
}

export interface Membership {
  readonly team: Team;
  readonly role: Role;
  readonly isDefault: boolean;
}

/** Teams and users, with the keys and tokens that authenticate them. */
export class IdentityRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Adds a team. One that exists keeps its name. */
  async putTeam(team: Team & { readonly createdAt: number }): Promise<void> {
    await this.#db
      .insertInto("teams")
      .values({ id: team.id, slug: team.slug, name: team.name, created_at: team.createdAt, deleted_at: null })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ slug: team.slug }))
      .execute();
  }

  /** Adds a user. One that exists keeps the name. */
  async putUser(user: { readonly id: string; readonly name: string; readonly createdAt: number }): Promise<void> {
    await this.#db
      .insertInto("users")
      .values({ id: user.id, name: user.name, created_at: user.createdAt, email: null })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  }

  /** A user who is a member already keeps the role. */
  async putMembership(membership: {
    readonly teamId: string;
    readonly userId: string;
    readonly isDefault: boolean;
    readonly role?: Role;
  }): Promise<void> {
    const is_default = membership.isDefault ? 1 : 0;
    const { role = "owner" } = membership;
    await this.#db
      .insertInto("team_members")
      .values({ team_id: membership.teamId, user_id: membership.userId, is_default, role, created_at: 0 })
      .onConflict((conflict) => conflict.columns(["user_id", "team_id"]).doUpdateSet({ is_default }))
      .execute();
  }

  /** Adds a key. An existing key with the same hash stays unchanged, also a deleted one of the secrets file. */
  async addApiKey(key: NewApiKey): Promise<void> {
    await this.#db.transaction().execute(async (tx) => {
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto("api_keys")
        .values({
          ...credentialRow(key),
          team_id: key.teamId,
          created_by: key.createdBy ?? null,
          sandbox_metadata: key.sandboxMetadata ? JSON.stringify(key.sandboxMetadata) : null,
          member_id: key.memberId ?? null,
        })
        .onConflict((conflict) => conflict.column("hash").doNothing())
        .executeTakeFirstOrThrow();
      if (numInsertedOrUpdatedRows === 0n || key.isSeeded) return;
      const { id: subjectId, createdAt: at, name, teamId } = key;
      await recordEvent(tx, { type: "key.lifecycle.created", teamId, subjectId, at, facts: { name } });
    });
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
      .leftJoin("team_members", (join) =>
        join.onRef("team_members.user_id", "=", "api_keys.member_id").onRef("team_members.team_id", "=", "api_keys.team_id"),
      )
      .where("api_keys.hash", "=", hash)
      .where("api_keys.deleted_at", "is", null)
      .where("teams.deleted_at", "is", null)
      .select(["api_keys.id as key_id", "api_keys.last_used_at", "api_keys.expires_at", ...TEAM_COLUMNS])
      .select(["api_keys.scopes", "api_keys.sandbox_metadata", "api_keys.member_id", "team_members.role"])
      .select(["api_keys.mask_length", "api_keys.mask_prefix", "api_keys.mask_suffix"])
      .executeTakeFirst();
    if (!row) return undefined;
    return {
      keyId: row.key_id,
      mask: maskFrom(row),
      team: teamFrom(row),
      lastUsedAt: row.last_used_at,
      expiresAt: row.expires_at,
      scopes: scopesFrom(row.scopes),
      sandboxMetadata: row.sandbox_metadata === null ? null : JSON.parse(row.sandbox_metadata),
      member: row.member_id === null ? undefined : { userId: row.member_id, role: (row.role ?? undefined) as Role | undefined },
    };
  }

  /** Records a use of a key or token, unless a use at `unlessSince` or later is recorded. */
  async touch(table: "api_keys" | "access_tokens", id: string, at: number, unlessSince = at): Promise<void> {
    await this.#db
      .updateTable(table)
      .set({ last_used_at: at })
      .where("id", "=", id)
      .where((eb) => eb.or([eb("last_used_at", "is", null), eb("last_used_at", "<", unlessSince)]))
      .execute();
  }

  async findTokenUser(hash: string): Promise<TokenUser | undefined> {
    const row = await this.#db
      .selectFrom("access_tokens")
      .where("hash", "=", hash)
      .where("deleted_at", "is", null)
      .select(["id", "user_id", "expires_at", "scopes", "last_used_at", "mask_length", "mask_prefix", "mask_suffix"])
      .executeTakeFirst();
    if (!row) return undefined;
    const { id, user_id, expires_at, scopes, last_used_at } = row;
    return {
      tokenId: id,
      mask: maskFrom(row),
      userId: user_id,
      expiresAt: expires_at,
      scopes: scopesFrom(scopes),
      lastUsedAt: last_used_at,
    };
  }

  async findTeam(id: string): Promise<Team | undefined> {
    const row = await this.#db
      .selectFrom("teams")
      .where("id", "=", id)
      .where("deleted_at", "is", null)
      .select(TEAM_COLUMNS)
      .executeTakeFirst();
    return row && teamFrom(row);
  }

  async findTeamBySlug(slug: string): Promise<Team | undefined> {
    const row = await this.#db.selectFrom("teams").where("slug", "=", slug).select(TEAM_COLUMNS).executeTakeFirst();
    return row && teamFrom(row);
  }

  /** Returns whether there is such a team. */
  async setStanding(id: string, set: { readonly standing: TeamStanding; readonly reason: string | null }): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("teams")
      .set({ standing: set.standing, standing_reason: set.reason })
      .where("id", "=", id)
      .where("deleted_at", "is", null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
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
      .where("teams.deleted_at", "is", null)
      .select([...TEAM_COLUMNS, "team_members.is_default", "team_members.role"])
      .orderBy("team_members.is_default", "desc")
      .orderBy("teams.created_at")
      .orderBy("teams.id")
      .execute();
    return rows.map((row) => ({
      team: teamFrom(row),
      role: row.role as Role,
      isDefault: row.is_default === 1,
    }));
  }
}

export function scopesFrom(text: string | null): readonly string[] | null {
  return text === null ? null : (JSON.parse(text) as readonly string[]);
}

function maskFrom(row: Pick<CredentialTable, "mask_length" | "mask_prefix" | "mask_suffix">): CredentialMask {
  return { length: row.mask_length, prefix: row.mask_prefix, suffix: row.mask_suffix };
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
    scopes: credential.scopes ? JSON.stringify(credential.scopes) : null,
  };
}

import type { Clock, Secret } from "@skerry/base";
import type { IdentityRepository, KeyRepository, ListedKey, ListedToken, OwnedKey } from "@skerry/store";
import { publicError } from "../errors.ts";
import { assertStanding } from "../teams/standing.ts";
import type { Caller } from "./caller.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, credentialOf, makeAccessToken, makeApiKey } from "./credential.ts";
import { ROLE_RIGHTS } from "./scopes.ts";

export interface NewKey {
  readonly name: string;
  /** The user who makes it; undefined for the operator. */
  readonly createdBy: string | undefined;
  readonly expiresAt: number | null;
  readonly scopes: readonly string[] | null;
  /** The only sandboxes that it reaches. Null: all of the team. */
  readonly sandboxMetadata: Readonly<Record<string, string>> | null;
}

export type NewToken = Pick<NewKey, "name" | "expiresAt" | "scopes">;

export interface CreatedKey {
  readonly key: ListedKey;
  /** Shown once; only its hash is stored. */
  readonly secret: Secret;
}

export interface CreatedToken {
  readonly token: Omit<ListedToken, "lastUsedAt">;
  readonly secret: Secret;
}

/** The keys of teams and the access tokens of users. No process keeps a key in memory, so every change counts at once everywhere. */
export class KeyService {
  readonly #identity: IdentityRepository;
  readonly #keys: KeyRepository;
  readonly #clock: Clock;
  constructor(deps: { readonly identity: IdentityRepository; readonly keys: KeyRepository; readonly clock: Clock }) {
    this.#identity = deps.identity;
    this.#keys = deps.keys;
    this.#clock = deps.clock;
  }

  async list(teamId: string): Promise<readonly ListedKey[]> {
    return await this.#keys.listOfTeam(teamId);
  }

  async create(teamId: string, { name, createdBy, ...limits }: NewKey): Promise<CreatedKey> {
    const secret = makeApiKey();
    const credential = credentialOf(secret, { prefix: API_KEY_PREFIX, name, now: this.#clock.now() });
    await this.#identity.addApiKey({ ...credential, ...limits, teamId, createdBy });
    const { hash: _hash, ...shown } = credential;
    return { secret, key: { ...shown, ...limits, createdBy: createdBy ?? null, memberId: null, lastUsedAt: null } };
  }

  /** For the operator, who may name a team that does not exist. */
  async createForTeam(teamId: string, key: NewKey): Promise<CreatedKey> {
    const team = await this.#identity.findTeam(teamId);
    if (!team) throw publicError("not_found", "Team not found");
    assertStanding(team, false);
    return await this.create(teamId, key);
  }

  /** Throws when the caller's role allows changes of own keys alone, and this is a key of another member. */
  async assertChangeable(caller: Caller, key: OwnedKey): Promise<void> {
    if (caller.kind !== "user") return;
    const memberships = await this.#identity.listMemberships(caller.userId);
    const role = memberships.find(({ team }) => team.id === key.teamId)?.role;
    if (role !== undefined && ROLE_RIGHTS[role].changesKeys === "all") return;
    const isForeign = (await this.#keys.has(key)) && !(await this.#keys.has({ ...key, madeBy: caller.userId }));
    if (isForeign) throw publicError("forbidden", `Your role in the team, ${role}, does not allow changes to keys of others`);
  }

  /** Returns whether the team has such a key. */
  async rename(teamId: string, keyId: string, name: string): Promise<boolean> {
    return await this.#keys.rename(teamId, keyId, { name, now: this.#clock.now() });
  }

  /** Returns whether the team had such a key. */
  async remove(teamId: string, keyId: string): Promise<boolean> {
    return await this.#keys.removeKey(teamId, keyId, this.#clock.now());
  }

  async listTokens(userId: string): Promise<readonly ListedToken[]> {
    return await this.#keys.listOfUser(userId);
  }

  async createToken(userId: string, { name, ...limits }: NewToken): Promise<CreatedToken> {
    const secret = makeAccessToken();
    const credential = credentialOf(secret, { prefix: ACCESS_TOKEN_PREFIX, name, now: this.#clock.now() });
    await this.#identity.addAccessToken({ ...credential, ...limits, userId });
    const { hash: _hash, ...shown } = credential;
    return { token: { ...shown, ...limits }, secret };
  }

  /** Returns whether the user had such a token. */
  async removeToken(userId: string, tokenId: string): Promise<boolean> {
    return await this.#keys.removeToken(userId, tokenId, this.#clock.now());
  }
}

import type { Clock, Secret } from "@skerry/base";
import type { Credential, IdentityRepository, KeyRepository, ListedKey } from "@skerry/store";
import { publicError } from "../errors.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, credentialOf, makeAccessToken, makeApiKey } from "./credential.ts";

export interface NewKey {
  readonly name: string;
  /** The user who makes it; undefined for the operator. */
  readonly createdBy: string | undefined;
  readonly expiresAt: number | null;
}

export interface CreatedKey {
  readonly key: ListedKey;
  /** Shown once; only its hash is stored. */
  readonly secret: Secret;
}

export interface CreatedToken {
  readonly token: Credential;
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

  async create(teamId: string, { name, createdBy, expiresAt }: NewKey): Promise<CreatedKey> {
    const secret = makeApiKey();
    const credential = credentialOf(secret, { prefix: API_KEY_PREFIX, name, now: this.#clock.now() });
    await this.#identity.addApiKey({ ...credential, expiresAt, teamId, createdBy });
    const { hash: _hash, ...shown } = credential;
    return { secret, key: { ...shown, expiresAt, createdBy: createdBy ?? null, lastUsedAt: null } };
  }

  /** For the operator, who may name a team that does not exist. */
  async createForTeam(teamId: string, key: NewKey): Promise<CreatedKey> {
    if (!(await this.#identity.findTeam(teamId))) throw publicError("not_found", "Team not found");
    return await this.create(teamId, key);
  }

  /** Returns whether the team has such a key. */
  async rename(teamId: string, keyId: string, name: string): Promise<boolean> {
    return await this.#keys.rename(teamId, keyId, name);
  }

  /** Returns whether the team had such a key. */
  async remove(teamId: string, keyId: string): Promise<boolean> {
    return await this.#keys.removeKey(teamId, keyId, this.#clock.now());
  }

  async createToken(userId: string, { name, expiresAt }: Pick<NewKey, "name" | "expiresAt">): Promise<CreatedToken> {
    const secret = makeAccessToken();
    const token = { ...credentialOf(secret, { prefix: ACCESS_TOKEN_PREFIX, name, now: this.#clock.now() }), expiresAt };
    await this.#identity.addAccessToken({ ...token, userId });
    return { token, secret };
  }

  /** Returns whether the user had such a token. */
  async removeToken(userId: string, tokenId: string): Promise<boolean> {
    return await this.#keys.removeToken(userId, tokenId, this.#clock.now());
  }
}

// Users who come from the identity provider. What the newest token says about groups decides about the teams that the settings name.

import { randomUUID } from "node:crypto";
import type { Clock, Logger } from "@skerry/base";
import type { ProviderUserRepository } from "@skerry/store";
import { publicError } from "../errors.ts";
import type { OidcConfig } from "./oidc-config.ts";
import { ProviderKeys } from "./provider-keys.ts";
import { verifyToken } from "./provider-tokens.ts";
import { rolesOfGroups } from "./roles-of-groups.ts";

export interface SignInDeps {
  readonly users: ProviderUserRepository;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly retryMs: number;
}

/** Who has signed in, and until when. */
export interface SignedIn {
  readonly userId: string;
  readonly expiresAt: number;
}

export class SignIns {
  readonly #config: OidcConfig;
  readonly #deps: SignInDeps;
  readonly #keys: ProviderKeys;
  readonly #teamSlugs: readonly string[];
  constructor(config: OidcConfig, deps: SignInDeps) {
    this.#config = config;
    this.#deps = deps;
    const { logger, retryMs } = deps;
    this.#keys = new ProviderKeys({ issuer: config.issuer, retryMs, now: () => performance.now(), logger });
    this.#teamSlugs = [...new Set(config.grants.map(({ teamSlug }) => teamSlug))];
  }

  /**
   * The user of a token. A user who is not known yet is made if the groups give a role in any team. An older token than the newest one that was
   * seen of the user gives no role back.
   */
  async userOf(token: string): Promise<SignedIn> {
    const { users, clock, logger } = this.#deps;
    const { subject, issuedAt, expiresAt, groups, name, email } = await verifyToken(this.#config, {
      token,
      findKey: this.#keys.find,
      clock,
    });
    const id = { issuer: this.#config.issuer, subject };
    const known = await users.find(id);
    if (known && known.seenIssuedAt >= issuedAt) return { userId: known.userId, expiresAt };
    const outcome = await users.signIn({
      ...id,
      issuedAt,
      newUser: { id: randomUUID(), name, email },
      roles: rolesOfGroups(groups, this.#config.grants),
      teamSlugs: this.#teamSlugs,
      now: clock.now(),
    });
    if (outcome === "no_team")
      throw publicError("forbidden", "You don't have access to any teams: no group of yours at the identity provider has one");
    if (outcome.changes > 0) logger.info({ user_id: outcome.userId, changes: outcome.changes }, "roles follow the identity provider");
    return { userId: outcome.userId, expiresAt };
  }
}

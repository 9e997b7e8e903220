// The keys with which the provider signs tokens.
//
// Failure policy: a provider that is down or slow must not stop users whose tokens can be verified with keys that are known. So known keys are
// renewed beside the requests, and are good for STALE_MS. A token that names an unknown key makes the keys be read again, but not more often
// than every `retryMs`, so that invented keys can't be used to flood the provider.

import type { Logger } from "@skerry/base";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { fetchJson, ProviderAway } from "./fetch-json.ts";

/** A key that the provider withdraws is refused after this time, if requests come. */
const FRESH_MS = 5 * 60_000;
/** Older keys are renewed before they are used. */
const WAIT_MS = 60 * 60_000;
/** Known keys are used for this long while the provider does not answer. */
const STALE_MS = 24 * 60 * 60_000;

type LocalKeys = ReturnType<typeof createLocalJWKSet>;

export interface ProviderKeysDeps {
  readonly issuer: string;
  /** Shortest time between two attempts to read the keys. */
  readonly retryMs: number;
  /** Monotonic, so that a clock that is set does not change the age of keys. */
  readonly now: () => number;
  readonly logger: Logger;
}

export class ProviderKeys {
  readonly #deps: ProviderKeysDeps;
  #known: { readonly keys: LocalKeys; readonly readAt: number } | undefined;
  #attempt: Promise<void> | undefined;
  #attemptedAt = Number.NEGATIVE_INFINITY;
  #lastFailure: ProviderAway | undefined;

  constructor(deps: ProviderKeysDeps) {
    this.#deps = deps;
  }

  /** Finds the key of a token. Throws ProviderAway while no key is known and the provider does not answer. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const age = this.#age();
    if (age > WAIT_MS) await this.#renew();
    else if (age > FRESH_MS) void this.#renew();
    if (this.#known === undefined || this.#age() > STALE_MS) throw this.#lastFailure ?? new ProviderAway("its keys are not known yet");
    const before = this.#known.keys;
    try {
      return await before(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#renew();
      if (this.#known.keys === before) throw error;
      return await this.#known.keys(header, token);
    }
  };

  #age(): number {
    return this.#known === undefined ? Number.POSITIVE_INFINITY : this.#deps.now() - this.#known.readAt;
  }

  /** Resolves after the attempt, whether it succeeded or not. Attempts at the same time are one. */
  async #renew(): Promise<void> {
    if (this.#attempt === undefined) {
      if (this.#deps.now() - this.#attemptedAt < this.#deps.retryMs) return;
      this.#attemptedAt = this.#deps.now();
      this.#attempt = this.#read().finally(() => {
        this.#attempt = undefined;
      });
    }
    await this.#attempt;
  }

  async #read(): Promise<void> {
    try {
      const keys = createLocalJWKSet(await readKeys(this.#deps.issuer));
      this.#known = { keys, readAt: this.#deps.now() };
      this.#lastFailure = undefined;
    } catch (error) {
      this.#lastFailure = error instanceof ProviderAway ? error : new ProviderAway("its keys are not valid", { cause: error });
      this.#deps.logger.warn({ err: error, issuer: this.#deps.issuer }, "the identity provider's keys could not be read");
    }
  }
}

async function readKeys(issuer: string): Promise<JSONWebKeySet> {
  const about = (await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)) as {
    issuer?: unknown;
    jwks_uri?: unknown;
  };
  if (about.issuer !== issuer) throw new ProviderAway(`it says that its issuer is ${JSON.stringify(about.issuer)}`);
  if (typeof about.jwks_uri !== "string") throw new ProviderAway("its configuration names no jwks_uri");
  return (await fetchJson(about.jwks_uri)) as JSONWebKeySet;
}

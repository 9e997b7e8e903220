// Finds the caller of a request. A wrong credential is refused, even when the request carries another credential that would do.

import type { IncomingHttpHeaders } from "node:http";
import { type Clock, isSameSecret, type Secret } from "@skerry/base";
import type { IdentityRepository, Team } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { invalid, publicError } from "../errors.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, parseCredential } from "./credential.ts";

/** `adminTeam`: the operator acts as the team in `X-Team-ID`. Operations that take `apiKey` accept that, too. */
export type AuthScheme = "apiKey" | "accessToken" | "admin" | "adminTeam";

export type Caller =
  | { readonly kind: "anyone" }
  /** `actor` names the key, or the admin, in the journal. */
  | { readonly kind: "team"; readonly team: Team; readonly actor: string }
  | { readonly kind: "user"; readonly userId: string }
  | { readonly kind: "admin" };

export interface AuthDeps {
  readonly identity: IdentityRepository;
  readonly adminToken: Secret;
  readonly clock: Clock;
}

/** Shortest interval between two updates of a key's `last used` time, so that not every request writes. */
const USED_RESOLUTION_MS = 60_000;
const KEY_HINT = "Invalid API key: this platform does not know it; `./skerry env` prints a valid one.";
const TOKEN_HINT = "Invalid Access token: this platform does not know it; `./skerry env --all` prints a valid one.";

/** Finds the caller of a request, for an operation that takes these schemes. Throws when it takes none of the given credentials. */
export type Authenticate = (schemes: readonly AuthScheme[], headers: IncomingHttpHeaders) => Promise<Caller>;

export async function authenticate(deps: AuthDeps, schemes: readonly AuthScheme[], headers: IncomingHttpHeaders): Promise<Caller> {
  if (schemes.length === 0) return { kind: "anyone" };
  const apiKey = single(headers["x-api-key"]);
  if (apiKey !== undefined && schemes.includes("apiKey")) return await teamOfKey(deps, apiKey);
  const bearer = bearerOf(headers.authorization);
  if (bearer !== undefined && schemes.includes("accessToken")) return await userOfToken(deps, bearer);
  const admin = single(headers["x-admin-token"]);
  if (admin !== undefined && ["admin", "adminTeam", "apiKey"].some((scheme) => schemes.includes(scheme as AuthScheme))) {
    return await admitAdmin(deps, { token: admin, teamId: single(headers["x-team-id"]), alone: schemes.includes("admin") });
  }
  throw publicError("unauthenticated", "authorization header is missing");
}

async function teamOfKey(deps: AuthDeps, key: string): Promise<Caller> {
  const parsed = parseCredential(key, API_KEY_PREFIX);
  if (parsed.kind === "malformed") throw publicError("unauthenticated", "authorization header is malformed");
  if (parsed.kind === "not-hex") throw publicError("unauthenticated", `${KEY_HINT}\nInvalid API key format`);
  const owner = await deps.identity.findKeyOwner(parsed.hash);
  if (!owner) throw publicError("unauthenticated", `${KEY_HINT}\nCannot get the team for the given API key`);
  const now = deps.clock.now();
  if (isExpired(owner, now)) throw publicError("unauthenticated", `${KEY_HINT}\nThe API key has expired`);
  const isDue = owner.lastUsedAt === null || now - owner.lastUsedAt >= USED_RESOLUTION_MS;
  if (isDue) await deps.identity.touchKey(owner.keyId, now, now - USED_RESOLUTION_MS + 1);
  return { kind: "team", team: owner.team, actor: `key:${owner.keyId}` };
}

async function userOfToken(deps: AuthDeps, token: string): Promise<Caller> {
  const parsed = parseCredential(token, ACCESS_TOKEN_PREFIX);
  if (parsed.kind === "malformed") throw publicError("unauthenticated", "authorization header is malformed");
  if (parsed.kind === "not-hex") throw publicError("unauthenticated", `${TOKEN_HINT}\nInvalid access token format`);
  const user = await deps.identity.findTokenUser(parsed.hash);
  if (!user) throw publicError("unauthenticated", `${TOKEN_HINT}\nCannot get the user for the given access token`);
  if (isExpired(user, deps.clock.now())) throw publicError("unauthenticated", `${TOKEN_HINT}\nThe access token has expired`);
  return { kind: "user", userId: user.userId };
}

function isExpired({ expiresAt }: { readonly expiresAt: number | null }, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** For an admin operation the token is enough. For other operations the caller acts as the team in `X-Team-ID`. */
async function admitAdmin(deps: AuthDeps, given: { token: string; teamId: string | undefined; alone: boolean }): Promise<Caller> {
  if (!isSameSecret(given.token, deps.adminToken.reveal())) {
    throw publicError("unauthenticated", "Invalid Access token.\nInvalid Access token.");
  }
  if (given.alone) return { kind: "admin" };
  if (given.teamId === undefined || !isUuid(given.teamId)) throw invalid("Invalid team ID");
  const team = await deps.identity.findTeam(given.teamId.toLowerCase());
  if (!team) throw publicError("not_found", "Team not found");
  return { kind: "team", team, actor: "admin" };
}

function bearerOf(header: string | undefined): string | undefined {
  return header?.startsWith("Bearer ") ? header.slice("Bearer ".length) : header;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

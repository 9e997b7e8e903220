// Finds the caller of a request. A wrong credential is refused, even when the request carries another credential that would do.

import type { IncomingHttpHeaders } from "node:http";
import { type Clock, isSameSecret, type Secret } from "@skerry/base";
import type { IdentityRepository, Membership } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { invalid, publicError } from "../errors.ts";
import { isProviderToken } from "../sign-in/provider-tokens.ts";
import type { SignIns } from "../sign-in/sign-ins.ts";
import { assertStanding, isOpenToBlocked } from "../teams/standing.ts";
import { assertMay, type Caller } from "./caller.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, parseCredential, shownMask } from "./credential.ts";
import type { NeededScope } from "./scopes.ts";

/** `adminTeam`: the operator acts as the team in `X-Team-ID`. Operations that take `apiKey` accept that, too. */
export type AuthScheme = "apiKey" | "accessToken" | "admin" | "adminTeam";

/** What an operation accepts and needs. */
export interface Admission {
  readonly auth: readonly AuthScheme[];
  readonly scope: NeededScope;
  readonly method: string;
}

export interface AuthDeps {
  readonly identity: IdentityRepository;
  readonly adminToken: Secret;
  /** Undefined: there is no identity provider. */
  readonly signIns: SignIns | undefined;
  readonly clock: Clock;
}

/** Shortest interval between two updates of a key's `last used` time, so that not every request writes. */
const USED_RESOLUTION_MS = 60_000;
const KEY_HINT = "Invalid API key: this platform does not know it; `./skerry env` prints a valid one.";
const TOKEN_HINT = "Invalid Access token: this platform does not know it; `./skerry env --all` prints a valid one.";
const EVERYTHING = ["*"];

/**
 * Finds the caller of a request. Throws when the operation takes none of the given credentials, or the caller may not do this. `onFound` is
 * told who it is before that is decided.
 */
export type Authenticate = (operation: Admission, headers: IncomingHttpHeaders, onFound?: (caller: Caller) => void) => Promise<Caller>;

export async function authenticate(
  deps: AuthDeps,
  operation: Admission,
  headers: IncomingHttpHeaders,
  onFound?: (caller: Caller) => void,
): Promise<Caller> {
  if (operation.auth.length === 0) return { kind: "anyone" };
  const caller = await findCaller(deps, operation, headers);
  onFound?.(caller);
  if (caller.kind === "team") assertStanding(caller.team, isOpenToBlocked(operation));
  assertMay(caller, operation.scope);
  return caller;
}

async function findCaller(deps: AuthDeps, operation: Admission, headers: IncomingHttpHeaders): Promise<Caller> {
  const schemes = operation.auth;
  const apiKey = single(headers["x-api-key"]);
  if (apiKey !== undefined && schemes.includes("apiKey")) return await teamOfKey(deps, apiKey);
  const bearer = bearerOf(headers.authorization);
  if (bearer !== undefined && deps.signIns && isProviderToken(bearer) && (schemes.includes("accessToken") || schemes.includes("apiKey"))) {
    return await callerOfProvider(deps.signIns, {
      identity: deps.identity,
      token: bearer,
      teamId: single(headers["x-team-id"]),
      operation,
    });
  }
  if (bearer !== undefined && schemes.includes("accessToken")) return await userOfToken(deps, bearer, operation);
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
  if (owner.member && owner.member.role === undefined) {
    throw publicError("unauthenticated", `${KEY_HINT}\nThe user of the API key has left the team`);
  }
  if (isTouchDue(owner, now)) await deps.identity.touch("api_keys", owner.keyId, now, now - USED_RESOLUTION_MS + 1);
  return {
    kind: "team",
    team: owner.team,
    actor: `key:${owner.keyId}`,
    userId: owner.member?.userId,
    credential: { id: owner.keyId, mask: shownMask(API_KEY_PREFIX, owner.mask) },
    scopes: owner.scopes ?? EVERYTHING,
    role: owner.member?.role,
    sandboxMetadata: owner.sandboxMetadata ?? undefined,
  };
}

async function userOfToken(deps: AuthDeps, token: string, operation: Admission): Promise<Caller> {
  const parsed = parseCredential(token, ACCESS_TOKEN_PREFIX);
  if (parsed.kind === "malformed") throw publicError("unauthenticated", "authorization header is malformed");
  if (parsed.kind === "not-hex") throw publicError("unauthenticated", `${TOKEN_HINT}\nInvalid access token format`);
  const user = await deps.identity.findTokenUser(parsed.hash);
  if (!user) throw publicError("unauthenticated", `${TOKEN_HINT}\nCannot get the user for the given access token`);
  const now = deps.clock.now();
  if (isExpired(user, now)) throw publicError("unauthenticated", `${TOKEN_HINT}\nThe access token has expired`);
  if (isTouchDue(user, now)) await deps.identity.touch("access_tokens", user.tokenId, now, now - USED_RESOLUTION_MS + 1);
  return {
    kind: "user",
    userId: user.userId,
    credential: { id: user.tokenId, mask: shownMask(ACCESS_TOKEN_PREFIX, user.mask) },
    scopes: user.scopes ?? EVERYTHING,
    expiresAt: user.expiresAt,
    needs: operation.scope,
    mayBlocked: isOpenToBlocked(operation),
  };
}

/** A user of the identity provider: as with an access token, or as a member of a team where an API key would be needed. */
async function callerOfProvider(
  signIns: SignIns,
  about: { identity: IdentityRepository; token: string; teamId: string | undefined; operation: Admission },
): Promise<Caller> {
  const { identity, token, teamId, operation } = about;
  const { userId, expiresAt } = await signIns.userOf(token);
  const isForUsers = operation.auth.includes("accessToken");
  if (isForUsers && (teamId === undefined || !operation.auth.includes("apiKey"))) {
    return { kind: "user", userId, scopes: EVERYTHING, expiresAt, needs: operation.scope, mayBlocked: isOpenToBlocked(operation) };
  }
  const { team, role } = chosenTeam(await identity.listMemberships(userId), teamId);
  return { kind: "team", team, actor: `user:${userId}`, userId, scopes: EVERYTHING, role };
}

function chosenTeam(memberships: readonly Membership[], teamId: string | undefined): Membership {
  if (teamId !== undefined && !isUuid(teamId)) throw invalid("Invalid team ID");
  const chosen = teamId === undefined ? memberships[0] : memberships.find(({ team }) => team.id === teamId.toLowerCase());
  if (chosen) return chosen;
  const message = teamId === undefined ? "You don't have access to any teams" : "You are not allowed to access this team";
  throw publicError("forbidden", message);
}

function isExpired({ expiresAt }: { readonly expiresAt: number | null }, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

function isTouchDue({ lastUsedAt }: { readonly lastUsedAt: number | null }, now: number): boolean {
  return lastUsedAt === null || now - lastUsedAt >= USED_RESOLUTION_MS;
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
  return { kind: "team", team, actor: "admin", scopes: EVERYTHING };
}

function bearerOf(header: string | undefined): string | undefined {
  return header?.startsWith("Bearer ") ? header.slice("Bearer ".length) : header;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

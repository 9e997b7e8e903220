// Who calls, and whether the caller may.

import type { Role, Team } from "@skerry/store";
import { publicError } from "../errors.ts";
import { allows, type NeededScope, ROLE_SCOPES, type Scope } from "./scopes.ts";

/** A key or token as lists show it. */
export interface ShownCredential {
  readonly id: string;
  readonly mask: string;
}

export interface TeamCaller {
  readonly kind: "team";
  readonly team: Team;
  /** Names the key, the user or the admin in the journal. */
  readonly actor: string;
  /** The member who signs in with the key, or at the identity provider. */
  readonly userId?: string | undefined;
  /** Undefined for the operator, who acts for the team. */
  readonly credential?: ShownCredential | undefined;
  /** `["*"]` for everything. */
  readonly scopes: readonly string[];
  /** The user's role, if the caller stands for a member of the team. */
  readonly role?: Role | undefined;
  /** The caller sees and makes only sandboxes with this metadata. */
  readonly sandboxMetadata?: Readonly<Record<string, string>> | undefined;
}

export interface UserCaller {
  readonly kind: "user";
  readonly userId: string;
  readonly credential?: ShownCredential | undefined;
  readonly scopes: readonly string[];
  /** When the credential expires; what is derived from it expires then, too. */
  readonly expiresAt: number | null;
  /** What the operation needs of the role in the team that it will act on. */
  readonly needs: NeededScope;
  /** Whether the operation is open to blocked teams. */
  readonly mayBlocked: boolean;
}

export type Caller = { readonly kind: "anyone" } | TeamCaller | UserCaller | { readonly kind: "admin" };

/** Whether the caller may do more in the team than this operation needs. Only for callers with a team. */
export function may(caller: Caller, scope: Scope): boolean {
  if (caller.kind !== "team") return caller.kind === "admin";
  return allows(caller.scopes, scope) && (caller.role === undefined || allows(ROLE_SCOPES[caller.role], scope));
}

/** Throws when the credential's own scopes, or its role in the team, do not allow the operation. */
export function assertMay(caller: Caller, needed: NeededScope): void {
  if (needed === "operator" || needed === "anyone" || caller.kind === "anyone" || caller.kind === "admin") return;
  if (!allows(caller.scopes, needed)) {
    const what = caller.kind === "team" ? "API key" : "access token";
    throw publicError("forbidden", `The ${what} does not have the scope "${needed}"`, { detailCode: "missing_scope" });
  }
  if (caller.kind === "team" && caller.role !== undefined) assertRole(caller.role, needed);
}

export function roleAllows(role: Role, needed: NeededScope): boolean {
  return needed === "operator" || needed === "anyone" || allows(ROLE_SCOPES[role], needed);
}

export function assertRole(role: Role, needed: NeededScope): void {
  if (roleAllows(role, needed)) return;
  throw publicError("forbidden", `Your role in the team, ${role}, does not allow this: it lacks "${needed}"`, {
    detailCode: "missing_scope",
  });
}

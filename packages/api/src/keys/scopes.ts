// What keys, tokens and roles may do. Each operation names the scope that it needs, and nothing else decides.

import type { Role } from "@skerry/store";

/** Every scope, with what it allows. A test compares docs/teams.md with this table. */
export const SCOPES = {
  "sandboxes:read": "list sandboxes and snapshots, read their details without tokens",
  "sandboxes:write": "create, use, change and kill sandboxes; snapshots, forks and links",
  "templates:read": "list templates, read builds, logs and tags",
  "templates:build": "build, change, tag and delete templates and snapshots",
  "volumes:read": "list volumes, read their files",
  "volumes:write": "create, use and delete volumes",
  "secrets:read": "list secrets, without values",
  "secrets:write": "create, change and delete secrets",
  "events:read": "read and follow the events of the team",
  "events:write": "make, change, test and delete webhooks",
  "audit:read": "read the audit log of the team",
  "keys:read": "list the team's API keys, masked",
  "keys:write": "create, rename and delete API keys",
  "team:read": "read members, invitations, limits and metrics of the team",
  "team:write": "invite, change and remove members, rename the team",
  "account:read": "list the own access tokens",
  "account:write": "create and delete the own access tokens, sign in a command line, accept invitations",
} as const;

export type Scope = keyof typeof SCOPES;

/** `operator`: only the admin token. `anyone`: no credential at all. */
export type NeededScope = Scope | "operator" | "anyone";

const ALL = Object.keys(SCOPES) as Scope[];

/** What an API key can have: it stands for a team, not for one of its users, so it can't manage keys, members or accounts. */
export const KEY_SCOPES: readonly Scope[] = ALL.filter((scope) => !/^(keys|account):|^team:write$/.test(scope));

/** What each role allows in its team. */
export const ROLE_SCOPES: Readonly<Record<Role, readonly string[]>> = {
  owner: ["*"],
  admin: ["*"],
  developer: ["sandboxes:*", "templates:*", "volumes:*", "secrets:*", "events:*", "audit:*", "keys:*", "team:read", "account:*"],
  viewer: ["sandboxes:read", "templates:read", "volumes:read", "secrets:read", "events:read", "team:read", "account:*"],
};

export interface RoleRights {
  /** Whether the role may make, change and remove owners. */
  readonly managesOwners: boolean;
  /** Which API keys of the team the role may rename and delete. */
  readonly changesKeys: "all" | "own" | "none";
}

/** What the scopes of a role don't tell. */
export const ROLE_RIGHTS: Readonly<Record<Role, RoleRights>> = {
  owner: { managesOwners: true, changesKeys: "all" },
  admin: { managesOwners: false, changesKeys: "all" },
  developer: { managesOwners: false, changesKeys: "own" },
  viewer: { managesOwners: false, changesKeys: "none" },
};

/** `granted` has scopes, `noun:*` and `*`. */
export function allows(granted: readonly string[], needed: Scope): boolean {
  return granted.includes("*") || granted.includes(needed) || granted.includes(`${needed.split(":")[0]}:*`);
}

/** The scopes that a list of scopes, `noun:*` and `*` stands for. */
export function scopesIn(granted: readonly string[]): readonly Scope[] {
  return ALL.filter((scope) => allows(granted, scope));
}

/** Whether the text is a scope, `noun:*` or `*`. */
export function isGrant(text: string): boolean {
  return text === "*" || ALL.some((scope) => scope === text || `${scope.split(":")[0]}:*` === text);
}

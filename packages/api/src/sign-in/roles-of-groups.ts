import type { Role } from "@skerry/store";
import type { GroupGrant } from "./oidc-config.ts";

/** From the least to the most. */
const RANKS: readonly Role[] = ["viewer", "developer", "admin", "owner"];

/** The roles of a user by the slugs of teams. Of several roles in a team, the user has the highest. */
export function rolesOfGroups(groups: readonly string[], grants: readonly GroupGrant[]): ReadonlyMap<string, Role> {
  const roles = new Map<string, Role>();
  for (const { group, teamSlug, role } of grants) {
    if (!groups.includes(group)) continue;
    const other = roles.get(teamSlug);
    if (other === undefined || RANKS.indexOf(role) > RANKS.indexOf(other)) roles.set(teamSlug, role);
  }
  return roles;
}

/** The texts of a claim: a list, or one text. A token without the claim has no groups. */
export function groupsOf(payload: Readonly<Record<string, unknown>>, claim: string): readonly string[] {
  // The name of a claim can contain dots itself, as in a URL.
  const value = Object.hasOwn(payload, claim) ? payload[claim] : claim.split(".").reduce(fieldOf, payload as unknown);
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((group) => typeof group === "string") : [];
}

function fieldOf(object: unknown, name: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, name)) return undefined;
  return (object as Record<string, unknown>)[name];
}

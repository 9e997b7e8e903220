// What a blocked and a banned team may still do. Checked with the credentials, before anything is looked up.

import type { Team } from "@skerry/store";
import { publicError } from "../errors.ts";
import type { NeededScope } from "../keys/scopes.ts";

/** An operation, as far as it matters whether a blocked team may call it. */
export interface StandingFacts {
  readonly method: string;
  readonly scope: NeededScope;
}

/** A blocked team reads and deletes. What gives out something, such as a link for an upload, is no read although it is a GET. */
export function isOpenToBlocked({ method, scope }: StandingFacts): boolean {
  return method === "DELETE" || (method === "GET" && scope.endsWith(":read"));
}

/** Throws when the team is banned, or blocked and the operation is closed to blocked teams. */
export function assertStanding({ standing = "active", standingReason }: Team, mayBlocked: boolean): void {
  if (standing === "active" || (standing === "blocked" && mayBlocked)) return;
  if (standing === "banned") throw publicError("forbidden", "team is banned");
  throw publicError("forbidden", standingReason ? `team is blocked: ${standingReason}` : "team is blocked");
}

/** Whether the operation would be refused for the team's standing. */
export function isStandingEnough(team: Team, mayBlocked: boolean): boolean {
  return team.standing === undefined || team.standing === "active" || (team.standing === "blocked" && mayBlocked);
}

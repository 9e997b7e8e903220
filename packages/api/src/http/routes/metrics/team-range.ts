import type { Team } from "@skerry/store";
import { Type } from "typebox";
import { invalid, publicError } from "../../../errors.ts";
import type { Caller } from "../../../keys/caller.ts";
import type { TimeRange } from "../../../metrics/down-sample.ts";
import { teamOf } from "../../input/request-values.ts";
import { rangeOf } from "./metric-bodies.ts";

export const TeamParams = Type.Object({ teamID: Type.String({ description: "The id of the caller's team." }) });

/** Throws for a team that is not the caller's. */
export function teamRangeOf(
  caller: Caller,
  { teamID }: { readonly teamID: string },
  query: { readonly start?: number; readonly end?: number },
): { readonly team: Team; readonly range: Partial<TimeRange> } {
  const team = teamOf(caller);
  if (teamID !== team.id) {
    throw publicError("forbidden", `You (${team.id}) are not authorized to access this team's (${teamID.slice(0, 100)}) metrics`);
  }
  const range = rangeOf(query);
  if (!range) throw invalid("start time cannot be after end time");
  return { team, range };
}

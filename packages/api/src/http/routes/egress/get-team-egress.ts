import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { MetricTimes, RangeQuery, timesOf } from "../metrics/metric-bodies.ts";
import { TeamParams, teamRangeOf } from "../metrics/team-range.ts";
import { EgressCountFields, encodeCounts } from "./egress-bodies.ts";

export const getTeamEgress = defineOperation({
  id: "getTeamEgress",
  method: "GET",
  path: "/teams/{teamID}/egress",
  tag: "teams",
  summary: "Read what the team's sandboxes reached",
  description:
    "Sums of five minutes, the oldest first, by default of the last seven days, and of at most 31 days. Those without traffic are missing. An extension of Skerry.",
  auth: ["apiKey"],
  scope: "team:read",
  params: TeamParams,
  query: Type.Object(RangeQuery),
  responses: {
    200: { description: "The sums.", schema: Type.Array(Type.Object({ ...MetricTimes, ...EgressCountFields }, { title: "TeamEgress" })) },
    ...failures(403),
  },
  repeatable: true,
  handle: async ({ egress }, { caller, params, query }) => {
    const { team, range } = teamRangeOf(caller, params, query);
    const steps = await egress.ofTeam(team, range);
    return { status: 200, body: steps.map(({ at, ...counts }) => ({ ...timesOf(at), ...encodeCounts(counts) })) };
  },
});

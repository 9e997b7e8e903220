import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { MetricTimes, RangeQuery, timesOf } from "./metric-bodies.ts";
import { TeamParams, teamRangeOf } from "./team-range.ts";

export const getTeamMaxMetrics = defineOperation({
  id: "getTeamMaxMetrics",
  method: "GET",
  path: "/teams/{teamID}/metrics/max",
  tag: "teams",
  summary: "Read the largest value of one of the team's metrics",
  auth: ["apiKey"],
  scope: "team:read",
  params: TeamParams,
  query: Type.Object({
    ...RangeQuery,
    metric: Type.Union([Type.Literal("concurrent_sandboxes"), Type.Literal("sandbox_start_rate")], { description: "Which metric." }),
  }),
  responses: {
    200: {
      description: "When it was largest, and the value.",
      schema: Type.Object({ ...MetricTimes, value: Type.Number({ description: "The largest value." }) }, { title: "MaxTeamMetric" }),
    },
    ...failures(403),
  },
  repeatable: true,
  handle: async ({ metrics }, { caller, params, query }) => {
    const { team, range } = teamRangeOf(caller, params, query);
    const { at, value } = (await metrics.maximumOfTeam(team, query.metric, range)) ?? { at: range.end ?? range.start ?? 0, value: 0 };
    return { status: 200, body: { ...timesOf(at), value } };
  },
});

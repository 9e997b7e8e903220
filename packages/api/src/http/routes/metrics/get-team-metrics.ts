import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32 } from "../../schemas.ts";
import { MetricTimes, RangeQuery, timesOf } from "./metric-bodies.ts";
import { TeamParams, teamRangeOf } from "./team-range.ts";

const TeamMetricSchema = Type.Object(
  {
    ...MetricTimes,
    concurrentSandboxes: Int32({ description: "The most sandboxes that ran at once." }),
    sandboxStartRate: Type.Number({ description: "Sandboxes started per second." }),
  },
  { title: "TeamMetric" },
);

export const getTeamMetrics = defineOperation({
  id: "getTeamMetrics",
  method: "GET",
  path: "/teams/{teamID}/metrics",
  tag: "teams",
  summary: "Read the team's metrics",
  description: "Oldest first; by default for the last seven days. The steps are those of the metrics of sandboxes.",
  auth: ["apiKey"],
  scope: "team:read",
  params: TeamParams,
  query: Type.Object(RangeQuery),
  responses: { 200: { description: "The metrics.", schema: Type.Array(TeamMetricSchema) }, ...failures(403) },
  repeatable: true,
  handle: async ({ metrics }, { caller, params, query }) => {
    const { team, range } = teamRangeOf(caller, params, query);
    const points = await metrics.ofTeam(team, range);
    return {
      status: 200,
      body: points.map(({ at, concurrent, startRate }) => ({
        ...timesOf(at),
        concurrentSandboxes: concurrent,
        sandboxStartRate: startRate,
      })),
    };
  },
});

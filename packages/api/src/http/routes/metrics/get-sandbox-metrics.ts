import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { encodeMetric, RangeQuery, rangeOf, SandboxMetricSchema } from "./metric-bodies.ts";

export const getSandboxMetrics = defineOperation({
  id: "getSandboxMetrics",
  method: "GET",
  path: "/sandboxes/{sandboxID}/metrics",
  tag: "sandboxes",
  summary: "Read a sandbox's metrics",
  description:
    "Oldest first; by default for the whole life of the sandbox. Ranges below an hour have a value for every 5 s, longer ones fewer: " +
    "every 30 s below 6 h, 1 min below 12 h, 2 min below a day, 5 min below 7 days, and 15 min beyond. Empty for an unknown sandbox.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  params: SandboxIdParams,
  query: Type.Object(RangeQuery),
  responses: { 200: { description: "The metrics.", schema: Type.Array(SandboxMetricSchema) }, ...failures() },
  repeatable: true,
  handle: async ({ metrics }, { caller, params, query }) => {
    const range = rangeOf(query);
    if (!range) throw invalid("Invalid time range for metrics");
    const found = await metrics.ofSandbox(teamOf(caller), sandboxIdOf(params), range);
    return { status: 200, body: found.map(encodeMetric) };
  },
});

import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

export const getRunningCounts = defineOperation({
  id: "getRunningCounts",
  method: "GET",
  path: "/admin/sandboxes/running-counts",
  tag: "admin",
  summary: "Count running sandboxes",
  description: "The number of running sandboxes of each team that has any, by the team's id.",
  auth: ["admin"],
  scope: "operator",
  responses: {
    200: {
      description: "The counts.",
      schema: Type.Unsafe<Record<string, number>>({ type: "object", additionalProperties: { type: "integer", minimum: 1 } }),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async ({ nodes }) => ({ status: 200, body: Object.fromEntries(await nodes.runningByTeam()) }),
});

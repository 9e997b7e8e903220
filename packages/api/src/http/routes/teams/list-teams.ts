import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

const TeamSchema = Type.Object(
  { teamID: Type.String(), name: Type.String(), apiKey: Type.String(), isDefault: Type.Boolean() },
  { title: "Team" },
);

export const listTeams = defineOperation({
  id: "listTeams",
  method: "GET",
  path: "/teams",
  tag: "teams",
  summary: "List the caller's teams",
  description: "Each call creates a new API key for every team, because stored keys are hashes and cannot be shown again.",
  auth: ["accessToken"],
  scope: "account:write",
  responses: { 200: { description: "The teams.", schema: Type.Array(TeamSchema) }, ...failures() },
  repeatable: false,
  handle: async (services, { caller }) => {
    const teams = await services.teams.listWithNewKeys(caller);
    return { status: 200, body: teams.map(({ team, apiKey, isDefault }) => ({ teamID: team.id, name: team.name, apiKey, isDefault })) };
  },
});

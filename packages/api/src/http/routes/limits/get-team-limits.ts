import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeTeamLimits, TeamLimitsSchema, TeamParams } from "./limit-bodies.ts";

export const getTeamLimits = defineOperation({
  id: "getTeamLimits",
  method: "GET",
  path: "/admin/teams/{teamID}/limits",
  tag: "admin",
  summary: "Read the limits of a team",
  description: "With its tier, what was set for the team itself, and what the team has now. An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  params: TeamParams,
  responses: { 200: { description: "The limits.", schema: TeamLimitsSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ limits }, { params }) => ({ status: 200, body: encodeTeamLimits(await limits.ofTeam(uuidOf(params.teamID, "team"))) }),
});

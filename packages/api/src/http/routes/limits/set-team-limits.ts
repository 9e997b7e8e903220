import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeTeamLimits, limitsOf, NewTeamLimitsSchema, TeamLimitsSchema, TeamParams } from "./limit-bodies.ts";

export const setTeamLimits = defineOperation({
  id: "setTeamLimits",
  method: "PUT",
  path: "/admin/teams/{teamID}/limits",
  tag: "admin",
  summary: "Set the limits of a team",
  description:
    "Replaces the team's tier and its own limits. Counts for the team's next request; what the team has already stays. An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  params: TeamParams,
  body: NewTeamLimitsSchema,
  responses: { 200: { description: "The limits.", schema: TeamLimitsSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ limits }, { params, body }) => {
    const set = { tier: body.tier ?? "default", overrides: limitsOf(body.overrides) };
    return { status: 200, body: encodeTeamLimits(await limits.setOfTeam(uuidOf(params.teamID, "team"), set)) };
  },
});

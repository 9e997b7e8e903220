import { publicError } from "../../../errors.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeTeamLimits, TeamLimitsSchema, TeamParams } from "./limit-bodies.ts";

export const getOwnLimits = defineOperation({
  id: "getOwnLimits",
  method: "GET",
  path: "/teams/{teamID}/limits",
  tag: "teams",
  summary: "Read the limits of the caller's team",
  description: "With what the team has now. An addition of Skerry.",
  auth: ["apiKey", "accessToken"],
  scope: "team:read",
  params: TeamParams,
  responses: { 200: { description: "The limits.", schema: TeamLimitsSchema }, ...failures(403) },
  repeatable: true,
  handle: async (services, { params, caller }) => {
    const teamId = uuidOf(params.teamID, "team");
    const isOwn = (await services.teams.teamsOf(caller)).some(({ id }) => id === teamId);
    if (!isOwn) throw publicError("forbidden", "You are not allowed to access this team");
    return { status: 200, body: encodeTeamLimits(await services.limits.ofTeam(teamId)) };
  },
});

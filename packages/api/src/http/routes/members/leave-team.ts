import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { TeamParams } from "./member-bodies.ts";

export const leaveTeam = defineOperation({
  id: "leaveTeam",
  method: "POST",
  path: "/teams/{teamID}/leave",
  tag: "teams",
  summary: "Leave a team",
  description: "Refused for the last owner. An addition of Skerry.",
  auth: ["accessToken"],
  scope: "account:write",
  params: TeamParams,
  responses: { 204: { description: "The caller is no member any more." }, ...failures(403, 409) },
  repeatable: false,
  handle: async (services, { caller, params }) => {
    const team = await services.teams.choose(caller, uuidOf(params.teamID, "team"));
    await services.members.leave({ teamId: team.id, userId: userOf(caller) });
    return { status: 204 };
  },
});

import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { nameOf, uuidOf } from "../keys/key-bodies.ts";
import { encodeTeam, NameBody, TeamDetailSchema, TeamParams } from "../members/member-bodies.ts";

export const updateTeam = defineOperation({
  id: "updateTeam",
  method: "PATCH",
  path: "/teams/{teamID}",
  tag: "teams",
  summary: "Rename a team",
  description: "An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:write",
  params: TeamParams,
  body: NameBody,
  responses: { 200: { description: "The team.", schema: TeamDetailSchema }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params, body }) => {
    const team = await services.teams.choose(caller, uuidOf(params.teamID, "team"));
    return { status: 200, body: encodeTeam(await services.accounts.renameTeam(team.id, nameOf(body))) };
  },
});

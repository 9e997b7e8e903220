import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeMember, MemberSchema, TeamParams } from "./member-bodies.ts";

export const listTeamMembers = defineOperation({
  id: "listTeamMembers",
  method: "GET",
  path: "/teams/{teamID}/members",
  tag: "teams",
  summary: "List a team's members",
  description: "In the order in which they joined. An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:read",
  params: TeamParams,
  responses: { 200: { description: "The members.", schema: Type.Array(MemberSchema) }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const team = await services.teams.choose(caller, uuidOf(params.teamID, "team"));
    return { status: 200, body: (await services.members.list(team.id)).map(encodeMember) };
  },
});

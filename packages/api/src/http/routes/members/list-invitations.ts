import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeInvitation, InvitationSchema, TeamParams } from "./member-bodies.ts";

export const listInvitations = defineOperation({
  id: "listInvitations",
  method: "GET",
  path: "/teams/{teamID}/invitations",
  tag: "teams",
  summary: "List a team's open invitations",
  description: "Oldest first. An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:read",
  params: TeamParams,
  responses: { 200: { description: "The invitations.", schema: Type.Array(InvitationSchema) }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const team = await services.teams.choose(caller, uuidOf(params.teamID, "team"));
    return { status: 200, body: (await services.members.listInvitations(team.id)).map(encodeInvitation) };
  },
});

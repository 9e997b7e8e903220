import { Type } from "typebox";
import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { RoleSchema } from "./member-bodies.ts";

export const acceptInvitation = defineOperation({
  id: "acceptInvitation",
  method: "POST",
  path: "/invitations/accept",
  tag: "teams",
  summary: "Accept an invitation",
  description: "Makes the calling user a member of the team. An addition of Skerry.",
  auth: ["accessToken"],
  scope: "account:write",
  body: Type.Object({ token: Type.String({ maxLength: 256, description: "The token of the invitation." }) }),
  responses: {
    200: {
      description: "The team and the role in it.",
      schema: Type.Object({ teamID: Type.String(), name: Type.String(), role: RoleSchema }, { title: "JoinedTeam" }),
    },
    ...failures(403, 404, 409),
  },
  repeatable: false,
  handle: async (services, { caller, body }) => {
    const { team, role } = await services.members.accept(userOf(caller), body.token);
    return { status: 200, body: { teamID: team.id, name: team.name, role } };
  },
});

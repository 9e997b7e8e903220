import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeMember, MemberParams, MemberSchema, RoleSchema } from "./member-bodies.ts";

export const setTeamMember = defineOperation({
  id: "setTeamMember",
  method: "PUT",
  path: "/teams/{teamID}/members/{userID}",
  tag: "teams",
  summary: "Set a member's role",
  description: "The operator may also add a user. Others invite. Only owners change owners. An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:write",
  params: MemberParams,
  body: Type.Object({ role: RoleSchema }),
  responses: { 200: { description: "The member.", schema: MemberSchema }, ...failures(403, 404, 409) },
  repeatable: true,
  handle: async (services, { caller, params, body }) => {
    const by = await services.teams.membershipOf(caller, uuidOf(params.teamID, "team"));
    const change = { userId: uuidOf(params.userID, "user"), role: body.role, mayAdd: caller.kind === "admin" };
    return { status: 200, body: encodeMember(await services.members.put(by, change)) };
  },
});

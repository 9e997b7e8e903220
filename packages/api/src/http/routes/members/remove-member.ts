import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { MemberParams } from "./member-bodies.ts";

export const removeTeamMember = defineOperation({
  id: "removeTeamMember",
  method: "DELETE",
  path: "/teams/{teamID}/members/{userID}",
  tag: "teams",
  summary: "Remove a member",
  description:
    "When the answer arrives, no process accepts the user's credentials for the team any more. Keys that the user made for the team stay, unless `deleteKeys` is true. An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:write",
  params: MemberParams,
  query: Type.Object({
    deleteKeys: Type.Optional(
      Type.Union([Type.Literal("true"), Type.Literal("false")], {
        description: "Whether to delete the API keys, too, that the user made for the team.",
      }),
    ),
  }),
  responses: { 204: { description: "The user is no member any more." }, ...failures(403, 404, 409) },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const by = await services.teams.membershipOf(caller, uuidOf(params.teamID, "team"));
    await services.members.remove(by, { userId: uuidOf(params.userID, "user"), withKeys: query.deleteKeys === "true" });
    return { status: 204 };
  },
});

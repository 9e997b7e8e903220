import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { TeamParams } from "./member-bodies.ts";

export const deleteInvitation = defineOperation({
  id: "deleteInvitation",
  method: "DELETE",
  path: "/teams/{teamID}/invitations/{invitationID}",
  tag: "teams",
  summary: "Withdraw an invitation",
  description: "An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:write",
  params: Type.Object({ ...TeamParams.properties, invitationID: Type.String() }),
  responses: { 204: { description: "Nobody can accept it any more." }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, params }) => {
    const by = await services.teams.membershipOf(caller, uuidOf(params.teamID, "team"));
    await services.members.removeInvitation(by, uuidOf(params.invitationID, "invitation"));
    return { status: 204 };
  },
});

import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { TeamParams } from "../members/member-bodies.ts";

export const deleteTeam = defineOperation({
  id: "deleteTeam",
  method: "DELETE",
  path: "/admin/teams/{teamID}",
  tag: "admin",
  summary: "Delete a team",
  description: "Deletes its keys, invitations and secrets, too. Refused while the team has sandboxes, templates or snapshots.",
  auth: ["admin"],
  scope: "operator",
  params: TeamParams,
  responses: { 204: { description: "The team is deleted." }, ...failures(404, 409) },
  repeatable: true,
  handle: async ({ accounts }, { params }) => {
    await accounts.deleteTeam(uuidOf(params.teamID, "team"));
    return { status: 204 };
  },
});

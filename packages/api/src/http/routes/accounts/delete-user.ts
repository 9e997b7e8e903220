import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { UserParams } from "../members/member-bodies.ts";

export const deleteUser = defineOperation({
  id: "deleteUser",
  method: "DELETE",
  path: "/admin/users/{userID}",
  tag: "admin",
  summary: "Delete a user",
  description: "With all memberships and access tokens. Refused for the last owner of a team.",
  auth: ["admin"],
  scope: "operator",
  params: UserParams,
  responses: { 204: { description: "The user is deleted." }, ...failures(404, 409) },
  repeatable: true,
  handle: async ({ accounts }, { params }) => {
    await accounts.deleteUser(uuidOf(params.userID, "user"));
    return { status: 204 };
  },
});

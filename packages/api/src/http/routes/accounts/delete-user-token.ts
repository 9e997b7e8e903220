import { Type } from "typebox";
import { publicError } from "../../../errors.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { UserParams } from "../members/member-bodies.ts";

export const deleteUserAccessToken = defineOperation({
  id: "deleteUserAccessToken",
  method: "DELETE",
  path: "/admin/users/{userID}/access-tokens/{accessTokenID}",
  tag: "admin",
  summary: "Delete a user's access token",
  description: "When the answer arrives, no process accepts the token any more.",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({ ...UserParams.properties, accessTokenID: Type.String() }),
  responses: { 204: { description: "The token is deleted." }, ...failures(404) },
  repeatable: true,
  handle: async ({ keys }, { params }) => {
    const userId = uuidOf(params.userID, "user");
    if (await keys.removeToken(userId, uuidOf(params.accessTokenID, "access token"))) return { status: 204 };
    throw publicError("not_found", "Access token not found");
  },
});

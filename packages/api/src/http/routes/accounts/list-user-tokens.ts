import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { AccessTokenSchema, encodeToken, uuidOf } from "../keys/key-bodies.ts";
import { UserParams } from "../members/member-bodies.ts";

export const listUserAccessTokens = defineOperation({
  id: "listUserAccessTokens",
  method: "GET",
  path: "/admin/users/{userID}/access-tokens",
  tag: "admin",
  summary: "List a user's access tokens",
  description: "Oldest first, masked.",
  auth: ["admin"],
  scope: "operator",
  params: UserParams,
  responses: { 200: { description: "The tokens.", schema: Type.Array(AccessTokenSchema) }, ...failures(404) },
  repeatable: true,
  handle: async ({ accounts, keys }, { params }) => {
    const user = await accounts.getUser(uuidOf(params.userID, "user"));
    return { status: 200, body: (await keys.listTokens(user.id)).map(encodeToken) };
  },
});

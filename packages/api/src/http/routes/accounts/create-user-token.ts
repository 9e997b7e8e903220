import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CreatedAccessTokenSchema, encodeToken, NewTokenSchema, newTokenOf, uuidOf } from "../keys/key-bodies.ts";
import { UserParams } from "../members/member-bodies.ts";

export const createUserAccessToken = defineOperation({
  id: "createUserAccessToken",
  method: "POST",
  path: "/admin/users/{userID}/access-tokens",
  tag: "admin",
  summary: "Create an access token for a user",
  description: "The token is shown only in this answer.",
  auth: ["admin"],
  scope: "operator",
  params: UserParams,
  body: NewTokenSchema,
  responses: { 201: { description: "The token.", schema: CreatedAccessTokenSchema }, ...failures(404) },
  repeatable: false,
  handle: async ({ accounts, keys }, request) => {
    const user = await accounts.getUser(uuidOf(request.params.userID, "user"));
    const { token, secret } = await keys.createToken(user.id, newTokenOf(request));
    return { status: 201, body: { ...encodeToken(token), token: secret.reveal() } };
  },
});

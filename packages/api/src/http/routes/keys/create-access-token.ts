import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CreatedAccessTokenSchema, encodeToken, NewTokenSchema, newTokenOf } from "./key-bodies.ts";

export const createAccessToken = defineOperation({
  id: "createAccessToken",
  method: "POST",
  path: "/access-tokens",
  tag: "teams",
  summary: "Create an access token",
  description: "A further token of the calling user. It is shown only in this answer, and may do no more than the token that creates it.",
  auth: ["accessToken"],
  scope: "account:write",
  body: NewTokenSchema,
  responses: { 201: { description: "The token.", schema: CreatedAccessTokenSchema }, ...failures(403) },
  repeatable: false,
  handle: async (services, request) => {
    const { token, secret } = await services.keys.createToken(userOf(request.caller), newTokenOf(request));
    return { status: 201, body: { ...encodeToken(token), token: secret.reveal() } };
  },
});

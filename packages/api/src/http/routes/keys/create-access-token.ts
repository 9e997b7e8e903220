import { ACCESS_TOKEN_PREFIX } from "../../../keys/credential.ts";
import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CreatedAccessTokenSchema, encodeExpiry, encodeMask, NewKeySchema, newKeyOf } from "./key-bodies.ts";

export const createAccessToken = defineOperation({
  id: "createAccessToken",
  method: "POST",
  path: "/access-tokens",
  tag: "teams",
  summary: "Create an access token",
  description: "A further token of the calling user. It is shown only in this answer.",
  auth: ["accessToken"],
  body: NewKeySchema,
  responses: { 201: { description: "The token.", schema: CreatedAccessTokenSchema }, ...failures() },
  repeatable: false,
  handle: async (services, request) => {
    const { token, secret } = await services.keys.createToken(userOf(request.caller), newKeyOf(request));
    const body = {
      id: token.id,
      name: token.name,
      token: secret.reveal(),
      mask: encodeMask(token.mask, ACCESS_TOKEN_PREFIX),
      createdAt: new Date(token.createdAt).toISOString(),
      ...encodeExpiry(token.expiresAt),
    };
    return { status: 201, body };
  },
});

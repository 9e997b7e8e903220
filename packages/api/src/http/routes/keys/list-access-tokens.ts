import { Type } from "typebox";
import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { AccessTokenSchema, encodeToken } from "./key-bodies.ts";

export const listAccessTokens = defineOperation({
  id: "listAccessTokens",
  method: "GET",
  path: "/access-tokens",
  tag: "teams",
  summary: "List the caller's access tokens",
  description: "Oldest first, masked. An addition of Skerry.",
  auth: ["accessToken"],
  scope: "account:read",
  responses: { 200: { description: "The tokens.", schema: Type.Array(AccessTokenSchema) }, ...failures(403) },
  repeatable: true,
  handle: async (services, { caller }) => ({ status: 200, body: (await services.keys.listTokens(userOf(caller))).map(encodeToken) }),
});

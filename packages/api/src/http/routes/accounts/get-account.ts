import { userOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { AccountSchema, accountOf } from "./account-bodies.ts";

export const getAccount = defineOperation({
  id: "getAccount",
  method: "GET",
  path: "/account",
  tag: "teams",
  summary: "Read the calling user",
  description: "The user, with teams and roles. Unlike `GET /teams` it creates no keys. An addition of Skerry.",
  auth: ["accessToken"],
  scope: "account:read",
  responses: { 200: { description: "The user.", schema: AccountSchema }, ...failures(403) },
  repeatable: true,
  handle: async (services, { caller }) => ({ status: 200, body: await accountOf(services, userOf(caller)) }),
});

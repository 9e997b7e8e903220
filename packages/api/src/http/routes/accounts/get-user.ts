import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { UserParams } from "../members/member-bodies.ts";
import { AccountSchema, accountOf } from "./account-bodies.ts";

export const getUser = defineOperation({
  id: "getUser",
  method: "GET",
  path: "/admin/users/{userID}",
  tag: "admin",
  summary: "Read a user",
  description: "With teams and roles.",
  auth: ["admin"],
  scope: "operator",
  params: UserParams,
  responses: { 200: { description: "The user.", schema: AccountSchema }, ...failures(404) },
  repeatable: true,
  handle: async (services, { params }) => ({ status: 200, body: await accountOf(services, uuidOf(params.userID, "user")) }),
});

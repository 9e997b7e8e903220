import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { nameOf, uuidOf } from "../keys/key-bodies.ts";
import { encodeUser, NameBody, UserParams, UserSchema } from "../members/member-bodies.ts";

export const updateUser = defineOperation({
  id: "updateUser",
  method: "PATCH",
  path: "/admin/users/{userID}",
  tag: "admin",
  summary: "Rename a user",
  auth: ["admin"],
  scope: "operator",
  params: UserParams,
  body: NameBody,
  responses: { 200: { description: "The user.", schema: UserSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ accounts }, { params, body }) => {
    const user = await accounts.renameUser(uuidOf(params.userID, "user"), nameOf(body));
    return { status: 200, body: encodeUser(user) };
  },
});

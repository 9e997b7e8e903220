import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { nameOf } from "../keys/key-bodies.ts";
import { emailOf, encodeUser, NewUserSchema, UserSchema } from "../members/member-bodies.ts";

export const createUser = defineOperation({
  id: "createUser",
  method: "POST",
  path: "/admin/users",
  tag: "admin",
  summary: "Create a user",
  description: "The user has no teams and no token yet.",
  auth: ["admin"],
  scope: "operator",
  body: NewUserSchema,
  responses: { 201: { description: "The user.", schema: UserSchema }, ...failures() },
  repeatable: false,
  handle: async ({ accounts }, { body }) => {
    const user = await accounts.createUser({ name: nameOf(body), email: emailOf(body) });
    return { status: 201, body: encodeUser(user) };
  },
});

import { Type } from "typebox";
import { encodeCursor, newestFirstOf, PageFields } from "../../input/cursor.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { NEXT_TOKEN_HEADER } from "../../template-schemas.ts";
import { encodeUser, UserSchema } from "../members/member-bodies.ts";

export const listAllUsers = defineOperation({
  id: "listAllUsers",
  method: "GET",
  path: "/admin/users",
  tag: "admin",
  summary: "List all users",
  description: "Newest first, in pages.",
  auth: ["admin"],
  scope: "operator",
  query: Type.Object(PageFields),
  responses: { 200: { description: "One page.", schema: Type.Array(UserSchema), headers: NEXT_TOKEN_HEADER }, ...failures() },
  repeatable: true,
  handle: async ({ accounts }, { query }) => {
    const { items, last } = await accounts.listUsers(newestFirstOf(query));
    const headers = last ? { "X-Next-Token": encodeCursor({ startedAt: last.createdAt, id: last.id }, "desc") } : {};
    return { status: 200, body: items.map(encodeUser), headers };
  },
});

import { Type } from "typebox";
import { encodeCursor, newestFirstOf, PageFields } from "../../input/cursor.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { NEXT_TOKEN_HEADER } from "../../template-schemas.ts";
import { encodeTeam, TeamDetailSchema } from "../members/member-bodies.ts";

export const listAllTeams = defineOperation({
  id: "listAllTeams",
  method: "GET",
  path: "/admin/teams",
  tag: "admin",
  summary: "List all teams",
  description: "Newest first, in pages.",
  auth: ["admin"],
  scope: "operator",
  query: Type.Object(PageFields),
  responses: { 200: { description: "One page.", schema: Type.Array(TeamDetailSchema), headers: NEXT_TOKEN_HEADER }, ...failures() },
  repeatable: true,
  handle: async ({ accounts }, { query }) => {
    const { items, last } = await accounts.listTeams(newestFirstOf(query));
    const headers = last ? { "X-Next-Token": encodeCursor({ startedAt: last.createdAt, id: last.id }, "desc") } : {};
    return { status: 200, body: items.map(encodeTeam), headers };
  },
});

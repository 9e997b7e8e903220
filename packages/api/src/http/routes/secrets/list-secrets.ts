import { Type } from "typebox";
import { encodeCursor, MAX_PAGE, PageFields, parseCursor } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { NEXT_TOKEN_HEADER } from "../../template-schemas.ts";
import { CONFIDENTIAL, encodeSecret, SecretSchema } from "./secret-bodies.ts";

const PREFIX = "sec_";

export const listSecrets = defineOperation({
  id: "listSecrets",
  method: "GET",
  path: "/secrets",
  tag: "secrets",
  summary: "List secrets, without their values",
  description: "The team's secrets, newest first, in pages.",
  auth: ["apiKey"],
  scope: "secrets:read",
  confidential: CONFIDENTIAL,
  query: Type.Object(PageFields),
  responses: { 200: { description: "One page.", schema: Type.Array(SecretSchema), headers: NEXT_TOKEN_HEADER }, ...failures() },
  repeatable: true,
  handle: async ({ secrets }, { caller, query }) => {
    const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken, "desc");
    const { items, last } = await secrets.list(teamOf(caller).id, {
      limit: query.limit ?? MAX_PAGE,
      ...(after ? { after: { createdAt: after.startedAt, id: PREFIX + after.id } } : {}),
    });
    const cursor = last && encodeCursor({ startedAt: last.createdAt, id: last.id.slice(PREFIX.length) }, "desc");
    return { status: 200, body: items.map(encodeSecret), headers: cursor === undefined ? {} : { "X-Next-Token": cursor } };
  },
});

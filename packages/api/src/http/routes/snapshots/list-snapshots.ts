import { type Static, Type } from "typebox";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { encodeCursor, parseCursor } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeSnapshot } from "../../output/encode-sandbox.ts";
import { failures } from "../../output/responses.ts";
import { SnapshotSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";

const MAX_LIMIT = 100;

const QuerySchema = Type.Object({
  sandboxID: Type.Optional(Type.String({ description: "Only those of this sandbox." })),
  name: Type.Optional(Type.String({ description: "Only this one: its name or id. With a tag, the build that the tag stands for." })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: MAX_LIMIT, description: "How many at most in one answer." }),
  ),
  nextToken: Type.Optional(Type.String({ description: "The `X-Next-Token` of the answer before." })),
});

export const listSnapshots = defineOperation({
  id: "listSnapshots",
  method: "GET",
  path: "/snapshots",
  tag: "snapshots",
  summary: "List snapshots",
  description: "The team's, each with what was taken last under its name, the newest first, a page at a time.",
  auth: ["apiKey"],
  query: QuerySchema,
  responses: {
    200: {
      description: "One page.",
      schema: Type.Array(SnapshotSchema),
      headers: { "X-Next-Token": "There is another page, and this asks for it." },
    },
    ...failures(),
  },
  repeatable: true,
  handle: answerSnapshots,
});

async function answerSnapshots(
  services: ApiServices,
  request: OperationRequest<unknown, Static<typeof QuerySchema>, unknown>,
): Promise<OperationResponse> {
  const { sandboxID, name, limit = MAX_LIMIT, nextToken } = request.query;
  const after = nextToken === undefined ? undefined : parseCursor(nextToken, "desc");
  const { items, last } = await services.snapshots.list(teamOf(request.caller), {
    // As in paths, older clients add the client's id.
    sandboxId: sandboxID?.split("-")[0],
    named: name === undefined ? undefined : { reference: parseTemplateReference(name), hasTag: name.includes(":") },
    limit,
    ...(after ? { after: { createdAt: after.startedAt, id: after.id } } : {}),
  });
  return {
    status: 200,
    body: items.map(encodeSnapshot),
    headers: last ? { "X-Next-Token": encodeCursor({ startedAt: last.template.createdAt, id: last.template.id }, "desc") } : {},
  };
}

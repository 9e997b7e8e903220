import { type Static, Type } from "typebox";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { encodeCursor, MAX_PAGE, PageFields, parseCursor } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeSnapshot } from "../../output/encode-sandbox.ts";
import { failures } from "../../output/responses.ts";
import { SnapshotSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";

const QuerySchema = Type.Object({
  sandboxID: Type.Optional(Type.String({ description: "Only snapshots of this sandbox." })),
  name: Type.Optional(Type.String({ description: "Only the snapshot of this name or id. With a tag: the build of that tag." })),
  ...PageFields,
});

export const listSnapshots = defineOperation({
  id: "listSnapshots",
  method: "GET",
  path: "/snapshots",
  tag: "snapshots",
  summary: "List snapshots",
  description: "The team's snapshots, newest first, in pages. Each name shows its latest build.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  query: QuerySchema,
  responses: {
    200: {
      description: "One page.",
      schema: Type.Array(SnapshotSchema),
      headers: { "X-Next-Token": "Present if another page follows. Send it as `nextToken`." },
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
  const { sandboxID, name, limit = MAX_PAGE, nextToken } = request.query;
  const after = nextToken === undefined ? undefined : parseCursor(nextToken, "desc");
  const { items, last } = await services.snapshots.list(teamOf(request.caller), {
    // Older clients append the client's id, as in paths.
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

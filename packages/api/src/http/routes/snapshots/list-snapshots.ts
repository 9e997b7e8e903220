import { DEFAULT_TAG, type SnapshotFilter } from "@skerry/store";
import { type Static, Type } from "typebox";
import { parseTemplateReference } from "../../../templates/reference.ts";
import { findTemplate } from "../../../templates/resolve.ts";
import { encodeCursor, parseCursor } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeSnapshot } from "../../output/encode-snapshot.ts";
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
  const { query } = request;
  const limit = query.limit ?? MAX_LIMIT;
  const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken, "desc");
  const filter = await readFilter(services, request);
  if (!filter) return { status: 200, body: [] };
  const page = { limit: limit + 1, ...(after ? { after: { createdAt: after.startedAt, id: after.id } } : {}) };
  const found = await services.store.snapshots.list(filter, page);
  const shown = found.slice(0, limit);
  const last = found.length > limit ? shown.at(-1)?.template : undefined;
  return {
    status: 200,
    body: shown.map(encodeSnapshot),
    headers: last ? { "X-Next-Token": encodeCursor({ startedAt: last.createdAt, id: last.id }, "desc") } : {},
  };
}

/** Undefined when nothing can match, because there is nothing of that name. */
async function readFilter(
  services: ApiServices,
  request: Pick<OperationRequest<unknown, Static<typeof QuerySchema>, unknown>, "caller" | "query">,
): Promise<SnapshotFilter | undefined> {
  const { query } = request;
  const team = teamOf(request.caller);
  // As in paths, older clients add the client's id.
  const base = { teamId: team.id, ...(query.sandboxID === undefined ? {} : { sourceSandboxId: query.sandboxID.split("-")[0] ?? "" }) };
  if (query.name === undefined) return base;
  const reference = parseTemplateReference(query.name);
  const template = await findTemplate(services.store.templates, team, reference);
  if (!template || template.teamId !== team.id) return undefined;
  const tag = reference.tag ?? (query.name.includes(":") ? DEFAULT_TAG : undefined);
  return { ...base, templateId: template.id, ...(tag === undefined ? {} : { tag }) };
}

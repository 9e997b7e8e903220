import { type Static, Type } from "typebox";
import { invalid, validationError } from "../../../errors.ts";
import { parseTemplateReference, type TemplateReference } from "../../../templates/reference.ts";
import { filterFor } from "../../input/caller-metadata.ts";
import { encodeCursor, MAX_PAGE, PageFields, parseCursor } from "../../input/cursor.ts";
import { parseMillisecondsFrom } from "../../input/date-time.ts";
import { parseMetadataFilter } from "../../input/metadata-filter.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse } from "../../operation.ts";
import { encodeListedSandbox } from "../../output/encode-sandbox.ts";
import { failures } from "../../output/responses.ts";
import { DateTime, ListedSandboxSchema } from "../../schemas.ts";
import type { ApiServices } from "../../services.ts";

const QuerySchema = Type.Object({
  metadata: Type.Optional(
    Type.String({
      description:
        "Only sandboxes with all of these pairs. Percent-encode each name and value, join them as a form (`name=value&…`, encoded again), and encode the whole as a query value.",
    }),
  ),
  state: Type.Optional(Type.String({ description: "`running`, `paused`, or both with a comma between them. Default: both." })),
  order: Type.Optional(
    Type.Union([Type.Literal("asc"), Type.Literal("desc")], { description: "The order of start times. Default: `desc`.", default: "desc" }),
  ),
  startedAfter: Type.Optional(DateTime("Only sandboxes that started at this time or later.")),
  template: Type.Optional(Type.String({ description: "Only sandboxes of this template: its id or name, without a tag." })),
  ...PageFields,
});

type Query = Static<typeof QuerySchema>;

export const listSandboxes = defineOperation({
  id: "listSandboxes",
  method: "GET",
  path: "/v2/sandboxes",
  tag: "sandboxes",
  summary: "List sandboxes",
  description: "The team's sandboxes that match all filters, in pages.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  keepsToMetadata: true,
  query: QuerySchema,
  responses: {
    200: {
      description: "One page.",
      schema: Type.Array(ListedSandboxSchema),
      headers: {
        "X-Next-Token": "Present if another page follows. Send it as `nextToken`.",
        "X-Total-Running": "Number of running sandboxes that match, on all pages.",
      },
    },
    ...failures(),
  },
  repeatable: true,
  handle: answerList,
});

async function answerList(services: ApiServices, request: OperationRequest<unknown, Query, unknown>): Promise<OperationResponse> {
  const { query } = request;
  const order = query.order ?? "desc";
  const metadata = filterFor(request.caller, parseMetadataFilter(query.metadata ?? ""));
  const states = parseStates(query.state);
  if (!metadata) return { status: 200, body: [], headers: states.has("running") ? { "X-Total-Running": "0" } : {} };
  const { items, last, totalRunning } = await services.sandboxes.list(teamOf(request.caller), {
    order,
    limit: query.limit ?? MAX_PAGE,
    ...(query.nextToken === undefined ? {} : { after: parseCursor(query.nextToken, order) }),
    states,
    metadata,
    startedFrom: query.startedAfter === undefined ? undefined : parseMillisecondsFrom(query.startedAfter, "query/startedAfter"),
    template: query.template === undefined ? undefined : parseTemplate(query.template),
  });
  return {
    status: 200,
    body: items.map((sandbox) => encodeListedSandbox(services.encoding, sandbox)),
    headers: {
      ...(totalRunning === undefined ? {} : { "X-Total-Running": String(totalRunning) }),
      ...(last ? { "X-Next-Token": encodeCursor(last, order) } : {}),
    },
  };
}

function parseStates(text: string | undefined): ReadonlySet<"running" | "paused"> {
  const states = new Set((text ?? "running,paused").split(","));
  for (const state of states) {
    if (state !== "running" && state !== "paused") throw validationError("query/state must be running, paused or both");
  }
  return states as Set<"running" | "paused">;
}

function parseTemplate(text: string): TemplateReference {
  if (text.includes(":")) throw invalid("Invalid template: tags are not supported here");
  return parseTemplateReference(text);
}

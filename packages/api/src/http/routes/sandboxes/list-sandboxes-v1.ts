import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { filterFor } from "../../input/caller-metadata.ts";
import { parseMetadataFilter } from "../../input/metadata-filter.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { encodeListedSandbox } from "../../output/encode-sandbox.ts";
import { failures } from "../../output/responses.ts";
import { ListedSandboxSchema } from "../../schemas.ts";

const MAX_ROWS = 5000;

export const listSandboxesV1 = defineOperation({
  id: "listSandboxesV1",
  method: "GET",
  path: "/sandboxes",
  tag: "sandboxes",
  summary: "List running sandboxes (older clients)",
  description: "All running sandboxes, newest first. Refused when more than 5000 match: use `GET /v2/sandboxes`.",
  deprecated: true,
  auth: ["apiKey"],
  scope: "sandboxes:read",
  keepsToMetadata: true,
  query: Type.Object({
    metadata: Type.Optional(Type.String({ description: "Only sandboxes with this metadata; see `GET /v2/sandboxes`." })),
  }),
  responses: { 200: { description: "The sandboxes.", schema: Type.Array(ListedSandboxSchema) }, ...failures() },
  repeatable: true,
  handle: async (services, request) => {
    const metadata = filterFor(request.caller, parseMetadataFilter(request.query.metadata ?? ""));
    if (!metadata) return { status: 200, body: [] };
    const found = await services.sandboxes.listAllRunning({ teamId: teamOf(request.caller).id, metadata, max: MAX_ROWS });
    if (!found) throw invalid(`More than ${MAX_ROWS} sandboxes match: use GET /v2/sandboxes, which has pages`);
    return { status: 200, body: found.map((sandbox) => encodeListedSandbox(services.encoding, sandbox)) };
  },
});

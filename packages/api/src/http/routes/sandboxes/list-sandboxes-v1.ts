import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import type { ShownSandbox } from "../../../sandboxes/service.ts";
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
  description: "All of them, the newest first. Where there are more than 5000, use `GET /v2/sandboxes`.",
  deprecated: true,
  auth: ["apiKey"],
  query: Type.Object({ metadata: Type.Optional(Type.String({ description: "Only those with this metadata; see `GET /v2/sandboxes`." })) }),
  responses: { 200: { description: "The sandboxes.", schema: Type.Array(ListedSandboxSchema) }, ...failures() },
  repeatable: true,
  handle: async (services, request) => {
    const filter = {
      teamId: teamOf(request.caller).id,
      listed: "running" as const,
      metadata: parseMetadataFilter(request.query.metadata ?? ""),
    };
    // Counted before anything is read: what is refused should cost little.
    if ((await services.store.sandboxes.count(filter)) > MAX_ROWS)
      throw invalid(`More than ${MAX_ROWS} sandboxes match; use GET /v2/sandboxes, which has pages`);
    const rows = await services.store.sandboxes.list(filter, { order: "desc", limit: MAX_ROWS });
    return { status: 200, body: rows.map((row) => encodeListedSandbox(services, row as ShownSandbox)) };
  },
});

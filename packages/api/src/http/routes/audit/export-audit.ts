import { Readable } from "node:stream";
import type { AuditLine } from "@skerry/store";
import { type Static, Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse, type ResponseSpec } from "../../operation.ts";
import { encodeAuditLine } from "../../output/encode-audit-line.ts";
import { failures } from "../../output/responses.ts";
import type { ApiServices } from "../../services.ts";
import { AuditQuery, auditFilterOf, ExportOrder, TeamQuery } from "./audit-query.ts";

const LINES: ResponseSpec = { description: "JSON objects, one on each line, of the schema `AuditLine`.", schema: Type.String() };

const Query = Type.Object({ ...AuditQuery, order: ExportOrder });
const AdminQuery = Type.Object({ ...AuditQuery, ...TeamQuery, order: ExportOrder });

export const exportAuditLines = defineOperation({
  id: "exportAuditLines",
  method: "GET",
  path: "/audit/export",
  tag: "events",
  summary: "Export the audit log of the team",
  description: "All lines that match, as newline-delimited JSON.",
  auth: ["apiKey"],
  scope: "audit:read",
  query: Query,
  responses: { 200: LINES, ...failures() },
  repeatable: true,
  handle: (services, request) => answer(services, request, teamOf(request.caller).id),
});

export const exportAllAuditLines = defineOperation({
  id: "exportAllAuditLines",
  method: "GET",
  path: "/admin/audit/export",
  tag: "admin",
  summary: "Export the audit log",
  description: "All lines that match, as newline-delimited JSON.",
  auth: ["admin"],
  scope: "operator",
  query: AdminQuery,
  responses: { 200: LINES, ...failures() },
  repeatable: true,
  handle: (services, request) => answer(services, request, undefined),
});

function answer(
  { audit }: ApiServices,
  { query, recheck, signal }: Pick<OperationRequest<unknown, Static<typeof AdminQuery>, unknown>, "query" | "recheck" | "signal">,
  teamId: string | undefined,
): OperationResponse {
  const lines = audit.export({ filter: auditFilterOf(query, teamId), order: query.order ?? "asc", recheck, signal });
  return {
    status: 200,
    headers: { "Content-Type": "application/x-ndjson", "Cache-Control": "no-store", "X-Accel-Buffering": "no" },
    body: Readable.from(textOf(lines), { objectMode: false }),
  };
}

async function* textOf(lines: AsyncGenerator<AuditLine>) {
  for await (const line of lines) yield `${JSON.stringify(encodeAuditLine(line))}\n`;
}

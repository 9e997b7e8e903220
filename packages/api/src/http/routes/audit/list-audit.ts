import { type Static, Type } from "typebox";
import { MAX_PAGE, PageFields } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationResponse, type ResponseSpec } from "../../operation.ts";
import { AuditLineSchema, encodeAuditLine } from "../../output/encode-audit-line.ts";
import { failures } from "../../output/responses.ts";
import type { ApiServices } from "../../services.ts";
import { AuditQuery, auditFilterOf, encodePlace, Order, parsePlace, TeamQuery } from "./audit-query.ts";

const PAGE: ResponseSpec = {
  description: "One page. With filters it may have fewer lines than `limit`, or none, although others follow.",
  schema: Type.Array(AuditLineSchema),
  headers: { "X-Next-Token": "Present if another page follows. Send it as `nextToken`." },
};

const Query = Type.Object({ ...AuditQuery, order: Order, ...PageFields });
const AdminQuery = Type.Object({ ...AuditQuery, ...TeamQuery, order: Order, ...PageFields });

export const listAuditLines = defineOperation({
  id: "listAuditLines",
  method: "GET",
  path: "/audit",
  tag: "events",
  summary: "List the audit log of the team",
  description: "Changes that were requested for the team, with their outcome, and requests that were refused.",
  auth: ["apiKey"],
  scope: "audit:read",
  query: Query,
  responses: { 200: PAGE, ...failures() },
  repeatable: true,
  handle: async (services, request) => await answer(services, request.query, teamOf(request.caller).id),
});

export const listAllAuditLines = defineOperation({
  id: "listAllAuditLines",
  method: "GET",
  path: "/admin/audit",
  tag: "admin",
  summary: "List the audit log",
  description: "Of all teams, with the operator's own requests, and with those that had no valid credential.",
  auth: ["admin"],
  scope: "operator",
  query: AdminQuery,
  responses: { 200: PAGE, ...failures() },
  repeatable: true,
  handle: async (services, request) => await answer(services, request.query, undefined),
});

async function answer({ audit }: ApiServices, query: Static<typeof AdminQuery>, teamId: string | undefined): Promise<OperationResponse> {
  const { limit = MAX_PAGE, nextToken, order = "desc" } = query;
  const after = nextToken === undefined ? undefined : parsePlace(nextToken, order);
  const { items, next } = await audit.list(auditFilterOf(query, teamId), { order, limit, ...(after === undefined ? {} : { after }) });
  return {
    status: 200,
    body: items.map(encodeAuditLine),
    headers: next === undefined ? {} : { "X-Next-Token": encodePlace(next, order) },
  };
}

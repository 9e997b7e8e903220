import type { AuditFilter } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { parseMillisecondsFrom } from "../../input/date-time.ts";

const OUTCOMES = [Type.Literal("done"), Type.Literal("refused"), Type.Literal("failed"), Type.Literal("unknown")];

export const AuditQuery = {
  actor: Type.Optional(Type.String({ description: "`key:<id>`, `user:<id>`, `operator` or `anyone`.", maxLength: 200 })),
  operation: Type.Optional(Type.String({ description: "Only this `operationId`.", maxLength: 200 })),
  subjectID: Type.Optional(Type.String({ description: "Only requests with this id in their path.", maxLength: 200 })),
  requestID: Type.Optional(Type.String({ description: "Only this request.", maxLength: 200 })),
  address: Type.Optional(Type.String({ description: "Only requests of this client.", maxLength: 200 })),
  outcome: Type.Optional(Type.Union(OUTCOMES, { description: "Only lines with this outcome." })),
  start: Type.Optional(Type.String({ description: "Only from this time on (RFC 3339)." })),
  end: Type.Optional(Type.String({ description: "Only before this time (RFC 3339)." })),
};

export const Order = Type.Optional(
  Type.Union([Type.Literal("asc"), Type.Literal("desc")], { description: "Default: `desc`, the newest first." }),
);
export const ExportOrder = Type.Optional(
  Type.Union([Type.Literal("asc"), Type.Literal("desc")], { description: "Default: `asc`, the oldest first." }),
);

export const TeamQuery = { teamID: Type.Optional(Type.String({ description: "Only lines of this team." })) };

const All = Type.Object({ ...AuditQuery, ...TeamQuery });

/** `teamId` is the team of a caller who may read no other lines. */
export function auditFilterOf(query: Static<typeof All>, teamId: string | undefined): AuditFilter {
  const { teamID, actor, operation, subjectID, requestID, address, outcome, start, end } = query;
  if (teamId === undefined && teamID !== undefined && !isUuid(teamID)) throw invalid("Invalid team ID");
  const team = teamId ?? teamID?.toLowerCase();
  return {
    ...(team === undefined ? {} : { teamId: team }),
    ...(actor === undefined ? {} : { actor: actor === "operator" ? "admin" : actor }),
    ...(operation === undefined ? {} : { operation }),
    ...(subjectID === undefined ? {} : { subjectId: subjectID }),
    ...(requestID === undefined ? {} : { requestId: requestID }),
    ...(address === undefined ? {} : { address }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(start === undefined ? {} : { from: parseMillisecondsFrom(start, "query/start") }),
    ...(end === undefined ? {} : { to: parseMillisecondsFrom(end, "query/end") }),
  };
}

const TOKEN = /^a(asc|desc)_(\d{1,15})$/;

export function encodePlace(number: number, order: "asc" | "desc"): string {
  return Buffer.from(`a${order}_${number}`).toString("base64url");
}

/** Throws for a token of a list with another order, which would skip or repeat lines. */
export function parsePlace(token: string, order: "asc" | "desc"): number {
  const match = TOKEN.exec(Buffer.from(token, "base64url").toString("utf8"));
  if (match?.[1] !== order) throw invalid("Invalid next token");
  return Number(match[2]);
}

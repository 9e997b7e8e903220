import type { IncomingHttpHeaders } from "node:http";
import type { EventFilter, EventPosition } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid, validationError } from "../../../errors.ts";
import { EVENT_TYPES, isByTime, isEventType } from "../../../events/event-types.ts";
import { parseMillisecondsFrom } from "../../input/date-time.ts";

const FilterFields = {
  sandboxID: Type.Optional(Type.String({ description: "Only about this sandbox." })),
  subjectID: Type.Optional(Type.String({ description: "Only about what has this id: a sandbox, a template, a build, a key or a secret." })),
  types: Type.Optional(Type.String({ description: "Only of these types, separated by commas.", maxLength: 2000 })),
};

const ListFields = {
  ...FilterFields,
  start: Type.Optional(Type.String({ description: "Only from this time on (RFC 3339). Pages are ordered by time then." })),
  end: Type.Optional(Type.String({ description: "Only before this time (RFC 3339). Pages are ordered by time then." })),
  after: Type.Optional(
    Type.Integer({ minimum: 0, description: "Only events whose `sequence` is higher. The order is `asc` then: the way to follow events." }),
  ),
  order: Type.Optional(Type.Union([Type.Literal("asc"), Type.Literal("desc")], { description: "Default: `desc`, the newest first." })),
};

const TeamField = {
  teamID: Type.Optional(Type.String({ description: "Only events of this team. The other filters need it." })),
};

const LastEventField = {
  lastEventID: Type.Optional(Type.Integer({ minimum: 0, description: "For clients that cannot send the header `Last-Event-ID`." })),
};

export const ListQuery = ListFields;
export const AdminListQuery = { ...ListFields, ...TeamField };
export const StreamQuery = { ...FilterFields, ...LastEventField };
export const AdminStreamQuery = { ...StreamQuery, ...TeamField };

const AllFields = Type.Object({ ...ListFields, ...TeamField, ...LastEventField });
export type EventQuery = Partial<Static<typeof AllFields>>;

/** `teamId` is the team of a caller who may read no other events. */
export function filterOf(query: EventQuery, teamId: string | undefined): EventFilter {
  const team = teamId ?? teamOfQuery(query);
  const { sandboxID, subjectID, start, end } = query;
  const subjectId = sandboxID?.split("-")[0] ?? subjectID;
  const types = query.types === undefined ? undefined : typesOf(query.types);
  const isNarrow = subjectId !== undefined || types !== undefined || start !== undefined || end !== undefined;
  if (team === undefined && isNarrow) throw validationError("query/teamID is missing: the other filters need it");
  return {
    ...(team === undefined ? {} : { teamId: team }),
    ...(subjectId === undefined ? {} : { subjectId }),
    ...(types === undefined ? {} : { types }),
    ...(start === undefined ? {} : { from: parseMillisecondsFrom(start, "query/start") }),
    ...(end === undefined ? {} : { to: parseMillisecondsFrom(end, "query/end") }),
  };
}

function teamOfQuery({ teamID }: EventQuery): string | undefined {
  if (teamID === undefined) return undefined;
  if (!isUuid(teamID)) throw invalid("Invalid team ID");
  return teamID.toLowerCase();
}

export function typesOf(text: string) {
  const names = [...new Set(text.split(",").map((name) => name.trim()))];
  const types = names.filter(isEventType);
  const unknown = names.find((name) => !isEventType(name));
  if (unknown !== undefined)
    throw validationError(`"${unknown.slice(0, 100)}" is not a type of event: ${Object.keys(EVENT_TYPES).join(", ")}`);
  return types;
}

const TOKEN = /^e(asc|desc)_(\d{1,15})(?:_(\d{1,15}))?$/;

export function encodePosition({ place, at }: EventPosition, order: "asc" | "desc"): string {
  return Buffer.from(`e${order}_${place}${at === undefined ? "" : `_${at}`}`).toString("base64url");
}

/** Throws for a token of a list with another order or filter, which would skip or repeat events. */
export function parsePosition(token: string, order: "asc" | "desc", filter: EventFilter): EventPosition {
  const match = TOKEN.exec(Buffer.from(token, "base64url").toString("utf8"));
  if (match?.[1] !== order || (match[3] !== undefined) !== isByTime(filter)) throw invalid("Invalid next token");
  const place = Number(match[2]);
  return match[3] === undefined ? { place } : { place, at: Number(match[3]) };
}

/** The event after which a stream goes on; undefined for the next new one. */
export function lastEventOf(query: EventQuery, headers: IncomingHttpHeaders): number | undefined {
  const header = headers["last-event-id"];
  if (header === undefined || header === "") return query.lastEventID;
  if (typeof header !== "string" || !/^\d{1,15}$/.test(header)) throw invalid("Last-Event-ID must be the id of an event of the stream");
  return Number(header);
}

import { Type } from "typebox";
import { validationError } from "../../../errors.ts";
import { positionOf } from "../../../events/event-types.ts";
import { MAX_PAGE, PageFields } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse, type ResponseSpec } from "../../operation.ts";
import { EventSchema, encodeEvent } from "../../output/encode-event.ts";
import { failures } from "../../output/responses.ts";
import type { ApiServices } from "../../services.ts";
import { AdminListQuery, type EventQuery, encodePosition, filterOf, ListQuery, parsePosition } from "./event-query.ts";

const PAGE: ResponseSpec = {
  description: "One page.",
  schema: Type.Array(EventSchema),
  headers: { "X-Next-Token": "Present if another page follows. Send it as `nextToken`." },
};

export const listEvents = defineOperation({
  id: "listEvents",
  method: "GET",
  path: "/events",
  tag: "events",
  summary: "List events",
  description: "The team's events, in pages. To follow them, send the `sequence` of the last event as `after`.",
  auth: ["apiKey"],
  scope: "events:read",
  query: Type.Object({ ...ListQuery, ...PageFields }),
  responses: { 200: PAGE, ...failures() },
  repeatable: true,
  handle: async (services, request) => await answer(services, request.query, teamOf(request.caller).id),
});

export const listAllEvents = defineOperation({
  id: "listAllEvents",
  method: "GET",
  path: "/admin/events",
  tag: "admin",
  summary: "List events of all teams",
  description: "In the order of the platform. With `teamID`, the filters and `after` work as for the team itself.",
  auth: ["admin"],
  scope: "operator",
  query: Type.Object({ ...AdminListQuery, ...PageFields }),
  responses: { 200: PAGE, ...failures() },
  repeatable: true,
  handle: async (services, request) => await answer(services, request.query, undefined),
});

type Query = OperationRequest<unknown, EventQuery & { limit?: number; nextToken?: string }, unknown>["query"];

async function answer({ events }: ApiServices, query: Query, teamId: string | undefined): Promise<OperationResponse> {
  const { limit = MAX_PAGE, nextToken, after } = query;
  const filter = filterOf(query, teamId);
  if (after !== undefined && query.order === "desc") throw validationError("query/after goes with the order asc");
  if (after !== undefined && (filter.from !== undefined || filter.to !== undefined)) {
    throw validationError("query/after excludes query/start and query/end");
  }
  const order = query.order ?? (after === undefined ? "desc" : "asc");
  const begin = nextToken === undefined ? undefined : parsePosition(nextToken, order, filter);
  const position = begin ?? (after === undefined ? undefined : { place: after });
  const { items, last } = await events.list(filter, { order, limit, ...(position ? { after: position } : {}) });
  return {
    status: 200,
    body: items.map((event) => encodeEvent(event, events)),
    headers: last ? { "X-Next-Token": encodePosition(positionOf(last, filter), order) } : {},
  };
}

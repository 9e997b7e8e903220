import { Readable } from "node:stream";
import type { StoredEvent } from "@skerry/store";
import { Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation, type OperationRequest, type OperationResponse, type ResponseSpec } from "../../operation.ts";
import { encodeEvent } from "../../output/encode-event.ts";
import { failures } from "../../output/responses.ts";
import type { ApiServices } from "../../services.ts";
import { AdminStreamQuery, type EventQuery, filterOf, lastEventOf, StreamQuery } from "./event-query.ts";

const STREAM: ResponseSpec = {
  description: "Server-sent events: `id` is the sequence, `event` the type, and `data` the event as JSON.",
  schema: Type.String(),
};

const ABOUT =
  "Never ends by itself. After a break, send the last `id` as `Last-Event-ID`, as browsers do. Without it, it begins with what is new.";

/** How long clients wait before they connect again. */
const RECONNECT = "retry: 1000\n\n";

export const streamEvents = defineOperation({
  id: "streamEvents",
  method: "GET",
  path: "/events/stream",
  tag: "events",
  summary: "Follow events",
  description: ABOUT,
  auth: ["apiKey"],
  scope: "events:read",
  query: Type.Object(StreamQuery),
  responses: { 200: STREAM, ...failures(429) },
  repeatable: true,
  handle: async (services, request) => await answer(services, request, teamOf(request.caller).id),
});

export const streamAllEvents = defineOperation({
  id: "streamAllEvents",
  method: "GET",
  path: "/admin/events/stream",
  tag: "admin",
  summary: "Follow events of all teams",
  description: `${ABOUT} The ids count the events of all teams, or of the team in \`teamID\`.`,
  auth: ["admin"],
  scope: "operator",
  query: Type.Object(AdminStreamQuery),
  responses: { 200: STREAM, ...failures(429) },
  repeatable: true,
  handle: async (services, request) => await answer(services, request, undefined),
});

async function answer(
  { events }: ApiServices,
  request: OperationRequest<unknown, EventQuery, unknown>,
  teamId: string | undefined,
): Promise<OperationResponse> {
  const { query, headers, signal, recheck } = request;
  const filter = filterOf(query, teamId);
  const stream = await events.stream({ filter, after: lastEventOf(query, headers), recheck, signal });
  const isOfTeam = filter.teamId !== undefined;
  return {
    status: 200,
    headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no" },
    body: Readable.from(
      textOf(stream, (event) => ({ id: isOfTeam ? event.sequence : event.number, data: encodeEvent(event, events) })),
      {
        objectMode: false,
      },
    ),
  };
}

async function* textOf(
  stream: AsyncGenerator<StoredEvent | undefined>,
  encode: (event: StoredEvent) => { readonly id: number; readonly data: unknown },
) {
  yield RECONNECT;
  for await (const event of stream) {
    if (event === undefined) {
      yield ": the stream is alive\n\n";
      continue;
    }
    const { id, data } = encode(event);
    yield `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}

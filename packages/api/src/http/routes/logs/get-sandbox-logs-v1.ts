import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { encodeEntry, encodeLine, LogEntrySchema, LogLineSchema, MAX_LINES } from "./log-bodies.ts";

export const getSandboxLogsV1 = defineOperation({
  id: "getSandboxLogsV1",
  method: "GET",
  path: "/sandboxes/{sandboxID}/logs",
  tag: "sandboxes",
  summary: "Read a sandbox's log (older clients)",
  description: "Oldest first. A client reads on with `start` a millisecond after the last entry that it has.",
  deprecated: true,
  auth: ["apiKey"],
  scope: "sandboxes:read",
  params: SandboxIdParams,
  query: Type.Object({
    start: Type.Optional(Type.Integer({ minimum: 0, description: "Entries from this time on, in milliseconds. Default: seven days ago." })),
    limit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_LINES, default: MAX_LINES })),
  }),
  responses: {
    200: {
      description: "The entries, twice.",
      schema: Type.Object({ logs: Type.Array(LogLineSchema), logEntries: Type.Array(LogEntrySchema) }, { title: "SandboxLogs" }),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async ({ logs }, { caller, params, query }) => {
    const window = { cursor: query.start, limit: query.limit ?? MAX_LINES, direction: "forward", minLevel: "debug" } as const;
    const lines = await logs.read(teamOf(caller), sandboxIdOf(params), window);
    return { status: 200, body: { logs: lines.map(encodeLine), logEntries: lines.map(encodeEntry) } };
  },
});

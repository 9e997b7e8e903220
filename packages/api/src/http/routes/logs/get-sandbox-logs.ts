import { Type } from "typebox";
import { sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { SandboxIdParams } from "../../schemas.ts";
import { encodeEntry, LevelSchema, LogEntrySchema, MAX_LINES } from "./log-bodies.ts";

export const getSandboxLogs = defineOperation({
  id: "getSandboxLogs",
  method: "GET",
  path: "/v2/sandboxes/{sandboxID}/logs",
  tag: "sandboxes",
  summary: "Read a sandbox's log",
  description: "Also of a sandbox that ended, while the log is kept. Empty for an unknown sandbox.",
  auth: ["apiKey"],
  scope: "sandboxes:read",
  params: SandboxIdParams,
  query: Type.Object({
    cursor: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "A time in milliseconds: entries from then on, or with `backward` entries up to then. Default: now, or with `forward` seven days ago.",
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_LINES, default: MAX_LINES })),
    direction: Type.Optional(
      Type.Union([Type.Literal("forward"), Type.Literal("backward")], {
        description: "`backward`: the newest entry first.",
        default: "backward",
      }),
    ),
    level: Type.Optional(LevelSchema),
    search: Type.Optional(Type.String({ maxLength: 256, description: "Only entries whose message contains this." })),
  }),
  responses: {
    200: { description: "The entries.", schema: Type.Object({ logs: Type.Array(LogEntrySchema) }, { title: "SandboxLogsV2" }) },
    ...failures(),
  },
  repeatable: true,
  handle: async ({ logs }, { caller, params, query }) => {
    const { cursor, limit = MAX_LINES, direction = "backward", level: minLevel = "debug", search } = query;
    const window = { cursor, limit, direction, minLevel, ...(search === undefined ? {} : { search }) };
    const lines = await logs.read(teamOf(caller), sandboxIdOf(params), window);
    return { status: 200, body: { logs: lines.map(encodeEntry) } };
  },
});

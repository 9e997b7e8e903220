import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { BuildParams } from "./build-bodies.ts";
import { BuildLogEntrySchema, encodeLogLine, LevelSchema, MAX_LOG_PAGE } from "./log-entries.ts";

export const getBuildLogs = defineOperation({
  id: "getBuildLogs",
  method: "GET",
  path: "/templates/{templateID}/builds/{buildID}/logs",
  tag: "templates",
  summary: "Read a build's log",
  auth: ["apiKey", "accessToken"],
  scope: "templates:read",
  params: BuildParams,
  query: Type.Object({
    cursor: Type.Optional(
      Type.Integer({ minimum: 0, description: "A time in milliseconds: entries from then on, or with `backward` entries up to then." }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_LOG_PAGE, default: MAX_LOG_PAGE })),
    direction: Type.Optional(
      Type.Union([Type.Literal("forward"), Type.Literal("backward")], {
        description: "`backward`: the newest entry first.",
        default: "forward",
      }),
    ),
    level: Type.Optional(LevelSchema),
    source: Type.Optional(
      Type.Union([Type.Literal("temporary"), Type.Literal("persistent")], { description: "Without effect: there is one log." }),
    ),
  }),
  responses: {
    200: { description: "The entries.", schema: Type.Object({ logs: Type.Array(BuildLogEntrySchema) }, { title: "TemplateBuildLogs" }) },
    ...failures(403),
  },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const ids = { templateId: params.templateID, buildId: params.buildID };
    const job = await services.builds.findToRead(await services.teams.teamsOf(caller), ids);
    const { cursor, limit = MAX_LOG_PAGE, direction = "forward", level: minLevel = "debug" } = query;
    const lines = await services.builds.readLogAround(job, { cursor, limit, direction, minLevel });
    return { status: 200, body: { logs: lines.map(encodeLogLine) } };
  },
});

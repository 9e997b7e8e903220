import type { BuildLogLine } from "@skerry/store";
import { type Static, Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { BuildParams } from "./build-bodies.ts";
import { BuildLogEntrySchema, encodeLogLine, LevelSchema, MAX_LOG_PAGE } from "./log-entries.ts";

const BuildInfoSchema = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String({ format: "uuid" }),
    status: Type.Union([Type.Literal("waiting"), Type.Literal("building"), Type.Literal("ready"), Type.Literal("error")]),
    logs: Type.Array(Type.String(), { description: "The entries as text, for builds of a Dockerfile. Otherwise empty." }),
    logEntries: Type.Array(BuildLogEntrySchema),
    reason: Type.Optional(
      Type.Object(
        {
          message: Type.String(),
          step: Type.Optional(Type.String({ description: "`base`, the number of the step, or `finalize`." })),
          logEntries: Type.Optional(Type.Array(BuildLogEntrySchema)),
        },
        { title: "BuildStatusReason", description: "Why the build failed." },
      ),
    ),
  },
  { title: "TemplateBuildInfo" },
);

export const getBuildStatus = defineOperation({
  id: "getBuildStatus",
  method: "GET",
  path: "/templates/{templateID}/builds/{buildID}/status",
  tag: "templates",
  summary: "Read a build's status and log",
  description: "A terminal status is never returned before all lines of the log can be read.",
  auth: ["apiKey", "accessToken"],
  scope: "templates:read",
  params: BuildParams,
  query: Type.Object({
    logsOffset: Type.Optional(Type.Integer({ minimum: 0, default: 0, description: "Entries to skip, counted after the filter by level." })),
    limit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_LOG_PAGE, default: MAX_LOG_PAGE })),
    level: Type.Optional(LevelSchema),
  }),
  responses: { 200: { description: "The status.", schema: BuildInfoSchema }, ...failures(403) },
  repeatable: true,
  handle: async (services, { caller, params, query }) => {
    const ids = { templateId: params.templateID, buildId: params.buildID };
    const job = await services.builds.findToRead(await services.teams.teamsOf(caller), ids);
    const { logsOffset: offset = 0, limit = MAX_LOG_PAGE, level: minLevel = "debug" } = query;
    const isWaiting = job.status === "waiting";
    const lines = isWaiting ? [] : await services.builds.readLog(job, { offset, limit, minLevel });
    const { reason } = job;
    return {
      status: 200,
      body: {
        templateID: job.templateId,
        buildID: job.id,
        status: job.status,
        logs: job.isLegacy ? lines.map(asText) : [],
        logEntries: lines.map(encodeLogLine),
        ...(job.status === "error" && reason ? { reason: { ...reason, logEntries: linesOfFailure(lines, reason.step) } } : {}),
      } satisfies Static<typeof BuildInfoSchema>,
    };
  },
});

function linesOfFailure(lines: readonly BuildLogLine[], step: string | undefined): Static<typeof BuildLogEntrySchema>[] {
  if (step === undefined) return [];
  return lines.filter((line) => line.step === step && (line.level === "warn" || line.level === "error")).map(encodeLogLine);
}

function asText({ at, message }: BuildLogLine): string {
  return `[${new Date(at).toISOString()}] ${message}\n`;
}

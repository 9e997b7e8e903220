import type { ListedTemplate } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { shownName } from "../../../templates/reference.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { DateTime, Int32 } from "../../schemas.ts";

const NIL_UUID = "00000000-0000-0000-0000-000000000000";

const TemplateSchema = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String({ format: "uuid", description: "The build that the `default` tag stands for; all zeros when there is none." }),
    cpuCount: Int32({ description: "Virtual CPUs.", minimum: 0 }),
    memoryMB: Int32({ description: "Memory in MiB.", minimum: 0 }),
    diskSizeMB: Int32({ description: "Disk in MiB.", minimum: 0 }),
    public: Type.Boolean({ description: "Whether every team may use it." }),
    aliases: Type.Array(Type.String(), { deprecated: true }),
    names: Type.Array(Type.String()),
    createdAt: DateTime("When it was made."),
    updatedAt: DateTime("When it was changed last."),
    createdBy: Type.Null(),
    lastSpawnedAt: Type.Union([DateTime("When a sandbox was made from it last."), Type.Null()]),
    spawnCount: Type.Integer({ minimum: 0 }),
    buildCount: Int32({ description: "How many builds it has.", minimum: 0 }),
    envdVersion: Type.String(),
    buildStatus: Type.Union([Type.Literal("waiting"), Type.Literal("building"), Type.Literal("ready"), Type.Literal("error")]),
  },
  { title: "Template" },
);

export const listTemplates = defineOperation({
  id: "listTemplates",
  method: "GET",
  path: "/templates",
  tag: "templates",
  summary: "List a team's templates",
  description: "The oldest first.",
  auth: ["apiKey", "accessToken"],
  query: Type.Object({ teamID: Type.Optional(Type.String({ description: "Needed only by users with several teams." })) }),
  responses: { 200: { description: "The templates.", schema: Type.Array(TemplateSchema) }, ...failures() },
  repeatable: true,
  handle: async (services, { caller, query }) => {
    if (query.teamID !== undefined && !isUuid(query.teamID)) throw invalid("Invalid team ID");
    const team = await services.teams.choose(caller, query.teamID);
    const listed = await services.templates.listOfTeam(team.id);
    return { status: 200, body: listed.map((entry) => encodeTemplate(entry, services.encoding.agentVersion)) };
  },
});

function encodeTemplate(entry: ListedTemplate, agentVersion: string): Static<typeof TemplateSchema> {
  const { template, build, aliases } = entry;
  return {
    templateID: template.id,
    buildID: build?.id ?? NIL_UUID,
    cpuCount: build?.cpuCount ?? 0,
    memoryMB: build?.memoryMb ?? 0,
    diskSizeMB: build?.diskSizeMb ?? 0,
    public: template.isPublic,
    aliases: aliases.map(({ alias }) => alias),
    names: aliases.map(({ namespace, alias }) => shownName({ namespace, name: alias })),
    createdAt: new Date(template.createdAt).toISOString(),
    updatedAt: new Date(template.updatedAt).toISOString(),
    createdBy: null,
    lastSpawnedAt: template.lastSpawnedAt === null ? null : new Date(template.lastSpawnedAt).toISOString(),
    spawnCount: template.spawnCount,
    buildCount: entry.buildCount,
    envdVersion: build ? build.agentVersion || agentVersion : "",
    buildStatus: build?.status ?? "waiting",
  };
}

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
    buildID: Type.String({ format: "uuid", description: "The build of the `default` tag; all zeros if there is none." }),
    cpuCount: Int32({ description: "Virtual CPUs.", minimum: 0 }),
    memoryMB: Int32({ description: "Memory in MiB.", minimum: 0 }),
    diskSizeMB: Int32({ description: "Disk size in MiB.", minimum: 0 }),
    public: Type.Boolean({ description: "Whether every team may use the template." }),
    aliases: Type.Array(Type.String(), { deprecated: true }),
    names: Type.Array(Type.String()),
    createdAt: DateTime("When the template was created."),
    updatedAt: DateTime("When the template was last changed."),
    createdBy: Type.Null(),
    lastSpawnedAt: Type.Union([DateTime("When a sandbox was last created from the template."), Type.Null()]),
    spawnCount: Type.Integer({ minimum: 0 }),
    buildCount: Int32({ description: "Number of builds.", minimum: 0 }),
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
  description: "Oldest first.",
  auth: ["apiKey", "accessToken"],
  query: Type.Object({
    teamID: Type.Optional(Type.String({ description: "For users with several teams: the team whose templates are listed." })),
  }),
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

// Schemas of templates, their builds and their tags.

import { Type } from "typebox";
import { NetworkLimitsSchema } from "./input/network-limits.ts";
import { DateTime, Int32 } from "./schemas.ts";

const optional = Type.Optional;
const uuid = (description: string) => Type.String({ format: "uuid", description });

export const BuildStatusSchema = Type.Union(
  [Type.Literal("waiting"), Type.Literal("building"), Type.Literal("ready"), Type.Literal("error")],
  { title: "BuildStatus" },
);

const templateFields = {
  templateID: Type.String({ description: "The template's id." }),
  buildID: uuid("The ready build of the `default` tag; all zeros if there is none."),
  cpuCount: Int32({ description: "Virtual CPUs.", minimum: 0 }),
  memoryMB: Int32({ description: "Memory in MiB.", minimum: 0 }),
  diskSizeMB: Int32({ description: "Disk size in MiB.", minimum: 0 }),
  public: Type.Boolean({ description: "Whether every team may use the template." }),
  aliases: Type.Array(Type.String(), { description: "The names without their namespaces.", deprecated: true }),
  names: Type.Array(Type.String(), { description: "The names with their namespaces." }),
  createdAt: DateTime("When the template was created."),
  updatedAt: DateTime("When the template was last changed."),
  createdBy: Type.Null({ description: "Always null: templates belong to teams." }),
  lastSpawnedAt: Type.Union([DateTime("When a sandbox was last created from the template."), Type.Null()]),
  spawnCount: Type.Integer({ minimum: 0, description: "Number of sandboxes that were created from the template." }),
  buildCount: Int32({ description: "Number of builds.", minimum: 0 }),
  envdVersion: Type.String({ description: "The version of the API inside its sandboxes; empty if there is no ready build." }),
  buildStatus: BuildStatusSchema,
  isDefault: Type.Boolean({ description: "Whether the template came with the platform." }),
  description: optional(Type.String({ description: "What the template is for." })),
  networkLimits: NetworkLimitsSchema,
};

export const TemplateSchema = Type.Object(templateFields, { title: "Template" });

export const TemplateBuildSchema = Type.Object(
  {
    buildID: uuid("The build's id."),
    status: BuildStatusSchema,
    createdAt: DateTime("When the build was requested."),
    updatedAt: DateTime("When the build was last changed."),
    finishedAt: optional(DateTime("When the build ended.")),
    cpuCount: Int32({ description: "Virtual CPUs.", minimum: 1 }),
    memoryMB: Int32({ description: "Memory in MiB.", minimum: 1 }),
    diskSizeMB: optional(Int32({ description: "Disk size in MiB. Only of ready builds.", minimum: 0 })),
    envdVersion: optional(Type.String({ description: "The version of the API inside its sandboxes. Only of ready builds." })),
  },
  { title: "TemplateBuild" },
);

export const TemplateWithBuildsSchema = Type.Object(
  { ...templateFields, builds: Type.Array(TemplateBuildSchema, { description: "One page of the builds, newest first." }) },
  { title: "TemplateWithBuilds" },
);

/** The path of operations on a template that take its name too. */
export const TemplateRefParams = Type.Object({
  templateID: Type.String({ description: "The id or name, percent-encoded. A tag is ignored." }),
});

/** Each tag of a request is a change of the database. */
export const TagsField = Type.Array(Type.String(), {
  maxItems: 100,
  description: "Tags of `a-z`, `0-9`, `-`, `_` and `.`, in any case. Not the id of a build.",
});

export const TemplateTagSchema = Type.Object(
  {
    tag: Type.String(),
    buildID: uuid("The build that got the tag last. It may not be ready."),
    createdAt: DateTime("When it got the tag."),
  },
  { title: "TemplateTag" },
);

export const AssignmentSchema = Type.Object(
  {
    assignmentId: uuid("Identifies this assignment."),
    buildId: uuid("The build, which is ready."),
    assignedAt: DateTime("When the build got the tag."),
    buildCreatedAt: DateTime("When the build was requested."),
    buildFinishedAt: Type.Union([DateTime("When the build ended."), Type.Null()]),
  },
  { title: "TagAssignment" },
);

export const NEXT_TOKEN_HEADER = { "X-Next-Token": "Present if another page follows. Send it as `nextToken`." };

// What the operations on builds share: fields of bodies, path parameters, and answers.

import type { SandboxSize } from "@skerry/store";
import { type Static, Type } from "typebox";
import type { RequestedBuild } from "../../../builds/build-service.ts";
import { shownName } from "../../../templates/reference.ts";
import { DateTime, Int32 } from "../../schemas.ts";

export const BuildParams = Type.Object({
  templateID: Type.String({ description: "The template's id." }),
  buildID: Type.String({ description: "The build's id." }),
});

export const SizeFields = {
  cpuCount: Type.Optional(Int32({ description: "Virtual CPUs of the sandboxes: 1, or an even number up to 32.", default: 2 })),
  memoryMB: Type.Optional(Int32({ description: "Memory of the sandboxes in MiB: an even number from 128 to 65536.", default: 1024 })),
};

export const BuildRequestedSchema = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String({ format: "uuid" }),
    public: Type.Boolean(),
    names: Type.Array(Type.String(), { description: "The template's names, with their namespace." }),
    tags: Type.Array(Type.String(), { description: "The tags that the build gets when it is ready." }),
    aliases: Type.Array(Type.String(), { deprecated: true }),
  },
  { title: "TemplateRequestResponseV3" },
);

export const TemplateLegacySchema = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String({ format: "uuid", description: "The new build." }),
    cpuCount: Int32({ description: "Virtual CPUs.", minimum: 1 }),
    memoryMB: Int32({ description: "Memory in MiB.", minimum: 1 }),
    diskSizeMB: Int32({ description: "Disk size in MiB.", minimum: 0 }),
    public: Type.Boolean(),
    aliases: Type.Array(Type.String()),
    names: Type.Array(Type.String()),
    createdAt: DateTime("When the template was created."),
    updatedAt: DateTime("When the template was last changed."),
    createdBy: Type.Null(),
    lastSpawnedAt: Type.Union([DateTime("When a sandbox was last created from the template."), Type.Null()]),
    spawnCount: Type.Integer({ minimum: 0 }),
    buildCount: Int32({ description: "Number of builds.", minimum: 0 }),
    envdVersion: Type.String({ description: "Empty until the build is ready." }),
  },
  { title: "TemplateLegacy" },
);

export function encodeLegacy(
  { template, buildId, buildCount }: RequestedBuild,
  about: { readonly namespace: string; readonly alias: string | undefined; readonly size: SandboxSize },
): Static<typeof TemplateLegacySchema> {
  const { namespace, alias, size } = about;
  return {
    templateID: template.id,
    buildID: buildId,
    cpuCount: size.cpuCount,
    memoryMB: size.memoryMb,
    diskSizeMB: size.diskSizeMb,
    public: template.isPublic,
    aliases: alias === undefined ? [] : [alias],
    names: alias === undefined ? [] : [shownName({ namespace, name: alias })],
    createdAt: new Date(template.createdAt).toISOString(),
    updatedAt: new Date(template.updatedAt).toISOString(),
    createdBy: null,
    lastSpawnedAt: template.lastSpawnedAt === null ? null : new Date(template.lastSpawnedAt).toISOString(),
    spawnCount: template.spawnCount,
    buildCount,
    envdVersion: "",
  };
}

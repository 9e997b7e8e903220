import { createHash } from "node:crypto";
import type { ListedBuild, ListedTemplate, TagAssignment, TemplateAlias } from "@skerry/store";
import type { Static } from "typebox";
import { shownName } from "../../templates/reference.ts";
import { encodeNetworkLimits } from "../input/network-limits.ts";
import type { AssignmentSchema, TemplateBuildSchema, TemplateSchema } from "../template-schemas.ts";

export const NIL_UUID = "00000000-0000-0000-0000-000000000000";

/** A template as lists show it. */
export function encodeTemplate(entry: ListedTemplate, agentVersion: string): Static<typeof TemplateSchema> {
  const { template, build, sizes } = entry;
  const networkLimits = encodeNetworkLimits(template.networkLimits);
  return {
    templateID: template.id,
    buildID: build?.id ?? NIL_UUID,
    cpuCount: sizes?.cpuCount ?? 0,
    memoryMB: sizes?.memoryMb ?? 0,
    diskSizeMB: sizes?.diskSizeMb ?? 0,
    public: template.isPublic,
    ...encodeNames(entry.aliases),
    createdAt: encodeTime(template.createdAt),
    updatedAt: encodeTime(template.updatedAt),
    createdBy: null,
    lastSpawnedAt: template.lastSpawnedAt === null ? null : encodeTime(template.lastSpawnedAt),
    spawnCount: template.spawnCount,
    buildCount: entry.buildCount,
    envdVersion: build ? build.agentVersion || agentVersion : "",
    buildStatus: entry.status ?? "waiting",
    isDefault: template.isDefault,
    ...(template.description === undefined ? {} : { description: template.description }),
    ...(networkLimits ? { networkLimits } : {}),
  };
}

/** A template as a team sees it to which it does not belong: how often others used it is not shown. */
export function encodeForeignTemplate(entry: ListedTemplate, agentVersion: string): Static<typeof TemplateSchema> {
  return { ...encodeTemplate(entry, agentVersion), lastSpawnedAt: null, spawnCount: 0, buildCount: 0 };
}

export function encodeBuild(build: ListedBuild, agentVersion: string): Static<typeof TemplateBuildSchema> {
  return {
    buildID: build.id,
    status: build.status,
    createdAt: encodeTime(build.createdAt),
    updatedAt: encodeTime(build.updatedAt),
    ...(build.finishedAt === null ? {} : { finishedAt: encodeTime(build.finishedAt) }),
    cpuCount: build.cpuCount,
    memoryMB: build.memoryMb,
    ...(build.status === "ready" ? { diskSizeMB: build.diskSizeMb, envdVersion: build.agentVersion || agentVersion } : {}),
  };
}

/** The names of a template with their namespaces, and each bare name once. */
export function encodeNames(aliases: readonly TemplateAlias[]): { readonly aliases: string[]; readonly names: string[] } {
  return {
    aliases: [...new Set(aliases.map(({ alias }) => alias))],
    names: aliases.map(({ namespace, alias }) => shownName({ namespace, name: alias })),
  };
}

export function encodeAssignment(assignment: TagAssignment): Static<typeof AssignmentSchema> {
  return {
    assignmentId: assignmentId(assignment),
    buildId: assignment.buildId,
    assignedAt: encodeTime(assignment.assignedAt),
    buildCreatedAt: encodeTime(assignment.buildCreatedAt),
    buildFinishedAt: assignment.buildFinishedAt === null ? null : encodeTime(assignment.buildFinishedAt),
  };
}

export function encodeTime(at: number): string {
  return new Date(at).toISOString();
}

/** An id that stays the same, derived from what makes the assignment unique (a UUID of version 8). */
function assignmentId({ templateId, tag, position, buildId, assignedAt }: TagAssignment): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([templateId, tag, position, buildId, assignedAt]))
    .digest();
  hash[6] = 0x80 | ((hash[6] ?? 0) & 0x0f);
  hash[8] = 0x80 | ((hash[8] ?? 0) & 0x3f);
  const hex = hash.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

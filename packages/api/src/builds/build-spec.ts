// The spec of a build for its node. Everything that the request refers to by name is resolved here, when the build begins.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { PlatformError } from "@skerry/base";
import type { BuildJob, BuildReason, BuildRequest, Team } from "@skerry/store";
import type { BuildSpecSchema } from "@skerry/wire/node";
import { parseTemplateReference } from "../templates/reference.ts";
import type { ResolvedTemplate, TemplateService } from "../templates/template-service.ts";
import { BASE_GONE } from "./reasons.ts";

export type RegistryCredentials =
  | { readonly type: "registry"; readonly username: string; readonly password: string }
  | { readonly type: "aws"; readonly awsAccessKeyId: string; readonly awsSecretAccessKey: string; readonly awsRegion: string }
  | { readonly type: "gcp"; readonly serviceAccountJson: string };

export type BuildSpecInit = MessageInitShape<typeof BuildSpecSchema>;

/** What a build is made from. */
export type BuildBase =
  | { readonly kind: "image" }
  | {
      readonly kind: "template";
      readonly resolved: ResolvedTemplate /** The only node that has it. */;
      readonly nodeId: string | undefined;
    }
  | { readonly kind: "missing"; readonly reason: BuildReason };

/** Finds the template that a build is based on. What its team may not use counts as missing. */
export async function findBase(templates: TemplateService, team: Team | undefined, request: BuildRequest): Promise<BuildBase> {
  if (request.source.kind === "image") return { kind: "image" };
  if (!team) return { kind: "missing", reason: BASE_GONE };
  try {
    const resolved = await templates.resolve(team, parseTemplateReference(request.source.reference));
    const { build } = resolved;
    return { kind: "template", resolved, nodeId: build.image?.nodeId ?? build.layersNodeId };
  } catch (error) {
    if (!(error instanceof PlatformError) || error.publicMessage === undefined) throw error;
    return { kind: "missing", reason: { message: lowerFirst(error.publicMessage), step: "base" } };
  }
}

export function buildSpecOf(
  job: BuildJob,
  request: BuildRequest,
  from: { readonly base: Exclude<BuildBase, { kind: "missing" }>; readonly credentials: RegistryCredentials | undefined },
): BuildSpecInit {
  return {
    buildId: job.id,
    templateId: job.templateId,
    cacheScope: job.teamId,
    source: sourceOf(request, from),
    steps: request.steps.map(({ args, ...step }) => ({ ...step, args: [...args] })),
    force: request.force,
    ...(request.startCommand === undefined ? {} : { startCommand: request.startCommand }),
    ...(request.readyCommand === undefined ? {} : { readyCommand: request.readyCommand }),
    cpuCount: job.cpuCount,
    memoryMb: job.memoryMb,
    diskSizeMb: job.diskSizeMb,
    runtime: "",
    withoutDefaultUser: request.withoutDefaultUser,
  };
}

function sourceOf(
  { source }: BuildRequest,
  { base, credentials }: Parameters<typeof buildSpecOf>[2],
): NonNullable<BuildSpecInit["source"]> {
  if (base.kind === "image") {
    return { case: "image", value: { reference: source.reference, credentials: encodeCredentials(credentials) } };
  }
  const { build } = base.resolved;
  const context = build.context ?? { user: build.defaultUser, workdir: build.defaultWorkdir, env: {} };
  return {
    case: "template",
    value: {
      name: source.reference,
      buildId: build.id,
      layers: build.image ? [] : [...build.layers],
      context: { ...context, env: { ...context.env } },
      ...(build.start === undefined ? {} : { start: { ...build.start, env: { ...build.start.env } } }),
      imageId: build.image?.id ?? "",
    },
  };
}

function encodeCredentials(
  credentials: RegistryCredentials | undefined,
):
  | { case: "basic"; value: { username: string; password: string } }
  | { case: "aws"; value: { accessKeyId: string; secretAccessKey: string; region: string } }
  | { case: "gcp"; value: { serviceAccountJson: string } }
  | { case: undefined } {
  switch (credentials?.type) {
    case "registry":
      return { case: "basic", value: { username: credentials.username, password: credentials.password } };
    case "aws": {
      const { awsAccessKeyId, awsSecretAccessKey, awsRegion } = credentials;
      return { case: "aws", value: { accessKeyId: awsAccessKeyId, secretAccessKey: awsSecretAccessKey, region: awsRegion } };
    }
    case "gcp":
      return { case: "gcp", value: { serviceAccountJson: credentials.serviceAccountJson } };
    case undefined:
      return { case: undefined };
  }
}

/** `invalid template reference: …`, as clients know it. */
function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

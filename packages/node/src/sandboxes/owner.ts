import { PlatformError } from "@skerry/base";
import { parseSandboxId } from "@skerry/wire";
import { decodeOptions, type SandboxOptions, type SandboxSpec } from "@skerry/wire/node";
import type { AgentIdentity } from "../agent/agent-client.ts";
import { newGeneration } from "../agent/generation.ts";
import type { ImageRecord } from "../records/image-record.ts";

/** Whose a container is. */
export interface Owner {
  /** What its agent is told. */
  readonly identity: AgentIdentity;
  /** What the caller chose for it. */
  readonly options: SandboxOptions;
}

export function ownerOf(spec: SandboxSpec, image: ImageRecord | undefined): Owner {
  return { identity: identityOf(spec, image), options: optionsOf(spec) };
}

/** What a sandbox's agent is told: what was asked for, above what the image has that it starts from. */
function identityOf(spec: SandboxSpec, image: ImageRecord | undefined): AgentIdentity {
  const { sandboxId, templateId, envVars, accessToken, defaultUser, defaultWorkdir, memoryMb } = spec;
  const before = image?.identity;
  return {
    sandboxId,
    templateId,
    envVars: { ...before?.envVars, ...envVars },
    accessToken,
    defaultUser: defaultUser || (before?.defaultUser ?? ""),
    defaultWorkdir: defaultWorkdir || (before?.defaultWorkdir ?? ""),
    generation: isContinued(image) ? (image.identity.generation ?? newGeneration()) : newGeneration(),
    memoryMb: image?.size.memoryMb ?? memoryMb,
  };
}

/** It goes on from what nobody else has: where others were started from its memory, it is one of several as well. */
function isContinued(image: ImageRecord | undefined): image is ImageRecord {
  return image?.kind === "pause" && image.local.isMemoryShared !== true;
}

/** The id of the sandbox. Throws PlatformError("invalid_argument") for a malformed id, which may be a path, and for a spec without options. */
export function checkedId(spec: SandboxSpec): string {
  const { sandboxId } = spec;
  optionsOf(spec);
  if (parseSandboxId(sandboxId) !== sandboxId || sandboxId === "")
    throw new PlatformError("invalid_argument", `not a sandbox id: ${sandboxId}`);
  return sandboxId;
}

/**
 * What the caller chose for the sandbox. Throws PlatformError("invalid_argument") when the spec has no options: a control plane of an earlier
 * version sends none, and the node must not guess what the sandbox may do.
 */
function optionsOf({ options }: SandboxSpec): SandboxOptions {
  if (!options)
    throw new PlatformError("invalid_argument", "the spec has no options: this node and its control plane have different versions");
  return decodeOptions(options);
}

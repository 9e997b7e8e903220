import { PlatformError } from "@skerry/base";
import { parseSandboxId } from "@skerry/wire";
import { decodeOptions, type SandboxOptions, type SandboxSecrets, type SandboxSpec } from "@skerry/wire/node";
import type { AgentIdentity } from "../agent/agent-client.ts";
import { newGeneration } from "../agent/generation.ts";
import type { ImageRecord } from "../records/image-record.ts";

/** The sandbox that a container belongs to. */
export interface Owner {
  /** The identity that the agent gets. */
  readonly identity: AgentIdentity;
  /** What the caller chose for the sandbox. */
  readonly options: SandboxOptions;
  /** What the options need. Must not be written anywhere. */
  readonly secrets?: SandboxSecrets;
}

export function ownerOf(spec: SandboxSpec, image: ImageRecord | undefined): Owner {
  return { identity: identityOf(spec, image), options: optionsOf(spec), ...(spec.secrets ? { secrets: spec.secrets } : {}) };
}

/** The identity for the agent: the values of the spec, and those of the image where the spec has none. */
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

/** Whether no other sandbox has this memory. After others were started from it, a resumed sandbox is one of several as well. */
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

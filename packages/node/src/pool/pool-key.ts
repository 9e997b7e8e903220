import { createHash } from "node:crypto";
import type { SandboxMakeup } from "../records/sandbox-record.ts";
import type { Owner } from "../sandboxes/owner.ts";

/**
 * The key of interchangeable ready sandboxes. `fingerprint` identifies the runtime (its program, the processor, and the specification that it
 * writes) and the settings of the site.
 */
export function poolKeyOf(makeup: SandboxMakeup, fingerprint: string): string {
  const { runtime, layers, size, agent, start } = makeup;
  return createHash("sha256")
    .update(JSON.stringify([runtime, fingerprint, layers, size, agent.digest, ...startKey(start)]))
    .digest("hex");
}

/** Empty for a template without a start command, whose key stays what it was in earlier versions. */
function startKey(start: SandboxMakeup["start"]): unknown[] {
  if (!start) return [];
  const { command, ready, user, workdir, env } = start;
  return [[command, ready, user, workdir, Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))]];
}

/** The id of a template's image. It is derived from the key, so that the node finds the image again after a restart. */
export function templateImageId(key: string): string {
  return `t${key.slice(0, 19)}`;
}

/** What the sandbox in an image is made of. */
export function makeupOfImage({ runtime, templateId, buildId, size, layers, agent, start }: SandboxMakeup): SandboxMakeup {
  return { runtime, templateId, buildId, size, layers, agent, ...(start ? { start } : {}) };
}

/** The owner of a container that waits in the pool. */
export function nobody(makeup: SandboxMakeup): Owner {
  const identity = {
    sandboxId: "",
    templateId: makeup.templateId,
    envVars: {},
    accessToken: "",
    defaultUser: "",
    defaultWorkdir: "",
    memoryMb: makeup.size.memoryMb,
  };
  return { identity, options: {} };
}

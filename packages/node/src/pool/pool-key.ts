import { createHash } from "node:crypto";
import type { SandboxMakeup } from "../records/sandbox-record.ts";
import type { Owner } from "../sandboxes/owner.ts";

/**
 * The key of interchangeable ready sandboxes. `fingerprint` identifies the runtime (its program, the processor, and the specification that it
 * writes) and the settings of the site.
 */
export function poolKeyOf(makeup: SandboxMakeup, fingerprint: string): string {
  const { runtime, layers, size, agent } = makeup;
  return createHash("sha256")
    .update(JSON.stringify([runtime, fingerprint, layers, size, agent.digest]))
    .digest("hex");
}

/** The id of a template's image. It is derived from the key, so that the node finds the image again after a restart. */
export function templateImageId(key: string): string {
  return `t${key.slice(0, 19)}`;
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

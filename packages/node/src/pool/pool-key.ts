import { createHash } from "node:crypto";
import type { SandboxMakeup } from "../records/sandbox-record.ts";
import type { Owner } from "../sandboxes/owner.ts";

/**
 * What two sandboxes must have in common for one to be as good as the other. `fingerprint` stands for the runtime: program,
 * processor and the specification that it writes.
 */
export function poolKeyOf(makeup: SandboxMakeup, fingerprint: string): string {
  const { runtime, layers, size, agent } = makeup;
  return createHash("sha256")
    .update(JSON.stringify([runtime, fingerprint, layers, size, agent.digest]))
    .digest("hex");
}

/** The image of a template has a name of its own, so it is found again after a restart. */
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

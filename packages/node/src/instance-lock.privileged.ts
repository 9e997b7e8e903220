// At most one process at a time may own what an instance has on this machine: a second one would take the first one's slots
// for remains. The lock is the kernel's (flock) on a file that only root can open: it goes with its process, however that
// ends, so it is never stale, and nobody else can take it.

import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { lockFile } from "@skerry/base/linux";

export interface InstanceLock {
  release(): void;
}

/** Preconditions: `dir`, the node's own folder, exists. Throws PlatformError("already_running") when another process has it. */
export function lockInstance(dir: string): InstanceLock {
  const fd = openSync(join(dir, "lock"), "w", 0o600);
  if (!lockFile(fd)) {
    closeSync(fd);
    throw new PlatformError("already_running", "another process runs the node of this data folder: stop it first (./skerry down)");
  }
  return { release: () => closeSync(fd) };
}

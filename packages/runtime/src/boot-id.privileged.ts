// Gives each start of a sandbox on runc its own boot id. The id in the kernel identifies the host, and does not change when a sandbox boots.
// runc accepts no mount below /proc in its configuration. So runc masks the file (kernel-paths.ts), and the node mounts the new id over
// the mask from outside, before it sends the agent its first request.

import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { mountInNamespaceOf } from "@skerry/base/linux";

export const BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id";

/** Mounts a new boot id into a sandbox that was just started. `bundleDir` must exist as long as the sandbox. */
export function showNewBootId(target: { readonly pid: number; readonly bundleDir: string }): void {
  const source = join(target.bundleDir, "boot_id");
  writeFileSync(source, `${randomUUID()}\n`, { mode: 0o444 });
  mountInNamespaceOf(target.pid, { source, target: BOOT_ID_PATH });
}

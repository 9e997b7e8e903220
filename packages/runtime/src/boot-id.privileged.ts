// On the host's kernel every process reads the host's boot id, which identifies the host and survives the boot of a sandbox.
// runc accepts no mount below /proc in its configuration. So it masks the file while it starts the sandbox (kernel-paths.ts), and the id
// of this boot is mounted over the mask from outside, before the agent is asked for anything.

import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { mountInNamespaceOf } from "@skerry/base/linux";

export const BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id";

/** Shows the processes of a sandbox that was just started a new boot id. `bundleDir` must exist as long as the sandbox. */
export function showNewBootId(target: { readonly pid: number; readonly bundleDir: string }): void {
  const source = join(target.bundleDir, "boot_id");
  writeFileSync(source, `${randomUUID()}\n`, { mode: 0o444 });
  mountInNamespaceOf(target.pid, { source, target: BOOT_ID_PATH });
}

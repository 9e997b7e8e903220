// gVisor's kernel tells the guest, as the size of its memory, the limit that its control group has when that kernel starts. The
// limit that the host enforces is higher, because the kernel itself needs memory too. So the limit is raised in between, by a hook
// of the OCI specification: the runtime runs it after it has started the kernel, and before it starts the guest's first process or
// reads its memory. Raising the limit from this process would race with both.

import type { OciHook, OciSpec } from "./oci.ts";

const SHELL = "/bin/sh";
/** Fails where no file exists: the sandbox would then be held to the lower limit. */
const SCRIPT =
  'bytes=$1; shift; set_in=0; for file; do [ ! -e "$file" ] || { echo "$bytes" > "$file" && set_in=1; } || exit 1; done; [ $set_in = 1 ]';
const TIMEOUT_S = 10;

/** The same specification, with a limit of `guestBytes` at the start; the hook raises it to the one that the specification had. */
export function raisingMemoryLimit(spec: OciSpec, about: { readonly guestBytes: number; readonly limitFiles: readonly string[] }): OciSpec {
  const { guestBytes, limitFiles } = about;
  const { memory } = spec.linux.resources;
  const raise: OciHook = {
    path: SHELL,
    args: ["sh", "-c", SCRIPT, "raise-memory-limit", String(memory.limit), ...limitFiles],
    timeout: TIMEOUT_S,
  };
  const atStart = memory.swap === undefined ? { limit: guestBytes } : { limit: guestBytes, swap: guestBytes };
  return {
    ...spec,
    hooks: { createRuntime: [raise] },
    linux: { ...spec.linux, resources: { ...spec.linux.resources, memory: atStart } },
  };
}

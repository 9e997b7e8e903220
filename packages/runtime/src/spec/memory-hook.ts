// gVisor's kernel reads the limit of its cgroup when it starts, and reports that limit to the guest as the size of its memory. The limit
// that the host enforces must be higher, because gVisor's kernel needs memory too. So a hook of the OCI specification raises the limit:
// the runtime runs the hook after it has started the kernel, and before it starts the guest's first process or reads its memory.
// Raising the limit from this process would race with both.

import type { OciHook, OciSpec } from "./oci.ts";

const SHELL = "/bin/sh";
/** Fails when none of the files exists, because the sandbox would then keep the lower limit. */
const SCRIPT =
  'bytes=$1; shift; set_in=0; for file; do [ ! -e "$file" ] || { echo "$bytes" > "$file" && set_in=1; } || exit 1; done; [ $set_in = 1 ]';
const TIMEOUT_S = 10;

/** Returns the specification with a memory limit of `guestBytes`, and a hook that raises it to the original limit. */
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

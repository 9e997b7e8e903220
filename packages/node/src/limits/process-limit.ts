import type { RuntimeName } from "@skerry/runtime";

const PER_MIB = 1;
const FEWEST = 256;
const MOST = 4096;

/**
 * How many processes and threads a sandbox may have. By its memory, because each takes some of it: in gVisor the smallest
 * program half a MiB, a third of that outside of the guest's own memory.
 */
export function processLimit(memoryMb: number): number {
  return Math.min(Math.max(memoryMb * PER_MIB, FEWEST), MOST);
}

/** gVisor's kernel has threads of its own, and up to four host processes for one of the guest's. */
const GVISOR_OWN = 512;
const GVISOR_PER_PROCESS = 4;

/**
 * What the host allows the sandbox's group. For gVisor more than its guest can reach, because the host would refuse processes to
 * gVisor's kernel too, which ends then.
 */
export function hostProcessLimit(memoryMb: number, runtime: RuntimeName): number {
  const guests = processLimit(memoryMb);
  return runtime === "gvisor" ? GVISOR_OWN + guests * GVISOR_PER_PROCESS : guests;
}

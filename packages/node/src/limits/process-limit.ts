import type { RuntimeName } from "@skerry/runtime";

const PER_MIB = 1;
const FEWEST = 256;
const MOST = 4096;

/**
 * The number of processes and threads that a sandbox may have. It depends on the sandbox's memory: in gVisor the smallest program takes half a MiB,
 * a third of it outside the guest's own memory.
 */
export function processLimit(memoryMb: number): number {
  return Math.min(Math.max(memoryMb * PER_MIB, FEWEST), MOST);
}

/** Threads of gVisor's kernel itself. It also has up to four host processes for each process of the guest. */
const GVISOR_OWN = 512;
const GVISOR_PER_PROCESS = 4;

/**
 * The host's limit for the sandbox's cgroup. For gVisor it is more than the guest can reach: at this limit the host would also refuse threads to
 * gVisor's kernel, which would end.
 */
export function hostProcessLimit(memoryMb: number, runtime: RuntimeName): number {
  const guests = processLimit(memoryMb);
  return runtime === "gvisor" ? GVISOR_OWN + guests * GVISOR_PER_PROCESS : guests;
}

import type { RuntimeName } from "@skerry/runtime";

const MIB = 1024 * 1024;

/** Memory for the runtime and the agent beside the guest. gVisor's kernel and file server run in the sandbox's cgroup. */
export const OVERHEAD_BYTES = 128 * MIB;
/**
 * Distance between the guard's limit and the kernel's limit.
 *
 * On runc the kernel's limit works as well: the kernel kills the largest process, whose memory is free at once. On gVisor the kernel's limit also
 * stops gVisor itself, which then frees nothing. The host kills one process after the other, and finally gVisor. So a gVisor sandbox must not
 * reach the kernel's limit. A hundred programs allocated 1.7 GB/s on two CPUs. They exceeded the guard's limit by 0.5 GB before they were killed,
 * and by 0.9 GB while four other programs used these CPUs.
 */
const RESERVE_BYTES: Readonly<Record<RuntimeName, number>> = { gvisor: 1024 * MIB, runc: 128 * MIB };

/** The memory limits of a sandbox, in ascending order. */
export interface MemoryPlan {
  /** The memory that the guest sees. */
  readonly guestBytes: number;
  /** Above this limit, the guard kills processes. */
  readonly guardBytes: number;
  /** Above this limit, the kernel kills processes. */
  readonly hostBytes: number;
}

export function memoryPlan(memoryMb: number, runtime: RuntimeName): MemoryPlan {
  const guestBytes = memoryMb * MIB;
  const guardBytes = guestBytes + OVERHEAD_BYTES;
  return { guestBytes, guardBytes, hostBytes: guardBytes + RESERVE_BYTES[runtime] };
}

const MIB = 1024 * 1024;

/** What runtime and agent need beside the guest: gVisor's own kernel and file server live in the sandbox's control group. */
const OVERHEAD_BYTES = 128 * MIB;
/**
 * Between the limit that the guard keeps and the one that the kernel does: in gVisor the fastest program measured takes 1.7 GB/s,
 * and with a hundred of them on two processors the agent needs up to 0.1 s to answer. What is faster, the kernel ends.
 */
const RESERVE_BYTES = 128 * MIB;

/** The limits of one sandbox's memory, each of them above the one before. */
export interface MemoryPlan {
  /** What the guest is told. */
  readonly guestBytes: number;
  /** Over this the guard ends processes. */
  readonly guardBytes: number;
  /** Over this the kernel does. */
  readonly hostBytes: number;
}

export function memoryPlan(memoryMb: number): MemoryPlan {
  const guestBytes = memoryMb * MIB;
  const guardBytes = guestBytes + OVERHEAD_BYTES;
  return { guestBytes, guardBytes, hostBytes: guardBytes + RESERVE_BYTES };
}

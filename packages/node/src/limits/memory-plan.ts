import type { RuntimeName } from "@skerry/runtime";

const MIB = 1024 * 1024;

/** What runtime and agent need beside the guest: gVisor's own kernel and file server live in the sandbox's control group. */
export const OVERHEAD_BYTES = 128 * MIB;
/**
 * Between the limit that the guard keeps and the one that the kernel does. On the host's kernel the latter is as good: it ends the
 * largest process, whose memory is back at once. gVisor's kernel is held up itself there, and gives nothing back: the host ends one
 * process after the other, and it in the end. So it must not get there. A hundred programs have been seen to take 1.7 GB/s on two
 * processors, and to be 0.5 GB over before they were ended in time, 0.9 GB where four others wanted those processors.
 */
const RESERVE_BYTES: Readonly<Record<RuntimeName, number>> = { gvisor: 1024 * MIB, runc: 128 * MIB };

/** The limits of one sandbox's memory, each of them above the one before. */
export interface MemoryPlan {
  /** What the guest is told. */
  readonly guestBytes: number;
  /** Over this the guard ends processes. */
  readonly guardBytes: number;
  /** Over this the kernel does. */
  readonly hostBytes: number;
}

export function memoryPlan(memoryMb: number, runtime: RuntimeName): MemoryPlan {
  const guestBytes = memoryMb * MIB;
  const guardBytes = guestBytes + OVERHEAD_BYTES;
  return { guestBytes, guardBytes, hostBytes: guardBytes + RESERVE_BYTES[runtime] };
}

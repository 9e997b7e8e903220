// Lends a sandbox memory beyond its limit for a while. gVisor needs it to save and restore deleted files that are open, and data that is queued
// in pipes and sockets. Most of it is garbage in gVisor's heap afterwards, which gVisor would keep for minutes. Therefore the node asks gVisor to
// release it, and lowers the limit accordingly. The guest's own limit does not change: its memory is not part of gVisor's heap.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { availableMemoryBytes, MemoryGroup, setMemoryLimit } from "@skerry/runtime";
import { type MemoryPlan, OVERHEAD_BYTES } from "./memory-plan.ts";

/** Memory that is never lent, because the rest of the host needs it. */
const HOST_RESERVE_BYTES = 512 * 1024 * 1024;
const FIRST_LOOK_MS = 1_000;
/** Longest interval between two attempts. Each attempt costs a garbage collection of gVisor. */
const LONGEST_WAIT_MS = 60_000;

/** Factor on measured values. */
const SLACK = 1.1;
/** Heap size up to which the host's normal limit has room for the growth of gVisor's heap during a save. */
const USUAL_HEAP_BYTES = 64 * 1024 * 1024;
/** Bytes that gVisor needs to encode one byte of its heap. The worst case is data in pipes and sockets, at 16 bytes for each byte. */
const HEAP_FACTOR = 17;

/** Memory that saving a frozen sandbox may need for the present content of gVisor's heap. */
export function bytesToSaveHeap(cgroupPath: string): number {
  return Math.max(0, heapBytes(cgroupPath) - USUAL_HEAP_BYTES) * HEAP_FACTOR;
}

/**
 * Memory beyond its limit that a saved sandbox will need for its restore. gVisor's heap grows to the same size then as it has now, after the
 * save.
 */
export function bytesToRestore(cgroupPath: string): number {
  const more = heapBytes(cgroupPath) - OVERHEAD_BYTES;
  return more > 0 ? Math.ceil(more * SLACK) : 0;
}

function heapBytes(cgroupPath: string): number {
  const group = MemoryGroup.open(cgroupPath);
  try {
    return group.ownBytes();
  } finally {
    group.close();
  }
}

export interface SandboxWithExtra {
  readonly key: string;
  readonly cgroupPath: string;
  readonly plan: MemoryPlan;
  /** The lent memory that the sandbox still has. 0 ends the observation: nothing is left, or the sandbox does not run. */
  extraBytes(): number;
  reduce(): Promise<void>;
  /** Records the lent memory that the sandbox still has; 0 for none. */
  keep(extraBytes: number): void;
}

export class ExtraMemory {
  readonly #logger: Logger;
  readonly #timers = new Map<string, NodeJS.Timeout | undefined>();
  /** Memory that is lent, and may not be in use yet. */
  #lent = 0;
  #closed = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Memory of the host that can be lent. */
  spareBytes(): number {
    return Math.max(0, availableMemoryBytes() - this.#lent - HOST_RESERVE_BYTES);
  }

  /** Runs work that needs this much memory of the host. Throws PlatformError("capacity_unavailable") when the host has less. */
  async lend<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (bytes > 0 && this.spareBytes() < bytes) {
      throw new PlatformError("capacity_unavailable", `the host does not have ${bytes} bytes of free memory`, {
        publicMessage: "the machine does not have enough memory for it now",
      });
    }
    this.#lent += bytes;
    try {
      return await work();
    } finally {
      this.#lent -= bytes;
    }
  }

  /** Lowers the limit of a running sandbox to its normal value, as fast as its memory use permits. A second call for a sandbox does nothing. */
  takeBack(sandbox: SandboxWithExtra): void {
    if (this.#closed || this.#timers.has(sandbox.key)) return;
    this.#lookIn(sandbox, FIRST_LOOK_MS);
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #lookIn(sandbox: SandboxWithExtra, ms: number): void {
    const timer = setTimeout(() => void this.#look(sandbox, ms), ms);
    timer.unref();
    this.#timers.set(sandbox.key, timer);
  }

  /** Never throws. */
  async #look(sandbox: SandboxWithExtra, waitedMs: number): Promise<void> {
    const before = sandbox.extraBytes();
    if (before > 0) {
      try {
        await sandbox.reduce();
        this.#lower(sandbox, before);
      } catch (error) {
        this.#logger.warn(
          { container_id: sandbox.key, err: asError(error) },
          "lowering the memory limit of a sandbox failed; will be tried again",
        );
      }
    }
    const left = sandbox.extraBytes();
    if (this.#closed || left === 0) this.#timers.delete(sandbox.key);
    else this.#lookIn(sandbox, left < before ? FIRST_LOOK_MS : Math.min(waitedMs * 2, LONGEST_WAIT_MS));
  }

  #lower({ cgroupPath, plan, keep, extraBytes }: SandboxWithExtra, before: number): void {
    // The sandbox may have been frozen, or may have ended, meanwhile.
    if (extraBytes() !== before) return;
    const left = Math.min(before, Math.max(0, heapBytes(cgroupPath) - OVERHEAD_BYTES));
    if (left === before) return;
    setMemoryLimit(cgroupPath, plan.hostBytes + left);
    keep(left);
  }
}

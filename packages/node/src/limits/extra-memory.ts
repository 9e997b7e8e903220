// Memory that a sandbox may have beyond its limits for a while, because gVisor needs it to save deleted files that are open and data
// that is queued in pipes and sockets, or to bring them back. Most of it is garbage of gVisor's heap afterwards, which it would keep for minutes: so it is asked to give it
// back, and the limits go down with it. What a guest may have does not change meanwhile: its memory is none of gVisor's heap.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { availableMemoryBytes, MemoryGroup, setMemoryLimit } from "@skerry/runtime";
import { type MemoryPlan, OVERHEAD_BYTES } from "./memory-plan.ts";

/** What is left to everything else on this machine. */
const HOST_RESERVE_BYTES = 512 * 1024 * 1024;
const FIRST_LOOK_MS = 1_000;
/** Each look takes a collection of gVisor's heap. */
const LONGEST_WAIT_MS = 60_000;

/** Over what was measured. */
const SLACK = 1.1;
/** Up to here the host's usual limit has room for whatever gVisor's heap becomes while it is saved. */
const USUAL_HEAP_BYTES = 64 * 1024 * 1024;
/** What gVisor needs to encode a byte that is queued in a pipe or a socket, at 16 bytes each; other things in its heap take far less. */
const HEAP_FACTOR = 17;

/** What saving a frozen sandbox may take for what is in gVisor's heap already. */
export function bytesToSaveHeap(cgroupPath: string): number {
  return Math.max(0, heapBytes(cgroupPath) - USUAL_HEAP_BYTES) * HEAP_FACTOR;
}

/**
 * What a sandbox that has just been saved takes beyond its limits when it is brought back: gVisor's heap grows to the same size then,
 * and is full of garbage afterwards, as it is now.
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
  /** 0 when it has none any more, or is none that runs: then it is not looked at any longer. */
  extraBytes(): number;
  reduce(): Promise<void>;
  /** Writes down what it still has; 0 for nothing. */
  keep(extraBytes: number): void;
}

export class ExtraMemory {
  readonly #logger: Logger;
  readonly #timers = new Map<string, NodeJS.Timeout | undefined>();
  /** What is promised and may not have been taken yet. */
  #lent = 0;
  #closed = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** What the host has left for this. */
  spareBytes(): number {
    return Math.max(0, availableMemoryBytes() - this.#lent - HOST_RESERVE_BYTES);
  }

  /** Does something that takes so much of the host's memory. Throws PlatformError("capacity_unavailable") where it has not as much. */
  async lend<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (bytes > 0 && this.spareBytes() < bytes) {
      throw new PlatformError("capacity_unavailable", `the machine has no ${bytes} bytes of memory to spare`, {
        publicMessage: "the machine has not enough memory for it now",
      });
    }
    this.#lent += bytes;
    try {
      return await work();
    } finally {
      this.#lent -= bytes;
    }
  }

  /** Takes the limits of one that runs back to what they were, as fast as its memory permits. Does nothing for one that it looks at already. */
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
        this.#logger.warn({ container_id: sandbox.key, err: asError(error) }, "a sandbox keeps a higher memory limit for now");
      }
    }
    const left = sandbox.extraBytes();
    if (this.#closed || left === 0) this.#timers.delete(sandbox.key);
    else this.#lookIn(sandbox, left < before ? FIRST_LOOK_MS : Math.min(waitedMs * 2, LONGEST_WAIT_MS));
  }

  #lower({ cgroupPath, plan, keep, extraBytes }: SandboxWithExtra, before: number): void {
    // It may have been frozen, or ended, while its kernel was asked.
    if (extraBytes() !== before) return;
    const left = Math.min(before, Math.max(0, heapBytes(cgroupPath) - OVERHEAD_BYTES));
    if (left === before) return;
    setMemoryLimit(cgroupPath, plan.hostBytes + left);
    keep(left);
  }
}

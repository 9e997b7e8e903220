import { totalmem } from "node:os";
import { PlatformError } from "@skerry/base";
import { availableMemoryBytes } from "@skerry/runtime";

const MAX_FLOOR_BYTES = 512 * 1024 * 1024;
const FLOOR_SHARE = 1 / 16;

/** Memory that is left to what runs already: with less than that, nothing is started. Small machines keep less. */
function floorBytes(): number {
  return Math.min(MAX_FLOOR_BYTES, totalmem() * FLOOR_SHARE);
}

/** Whether the machine has room in its memory for so much more. */
export function hasHostMemory(neededBytes = 0): boolean {
  return availableMemoryBytes() - neededBytes >= floorBytes();
}

/**
 * Throws PlatformError("memory_unavailable"). Starting a sandbox regardless would make the kernel choose what it ends, which may be
 * another sandbox.
 */
export function assertHostMemory(neededBytes = 0): void {
  if (hasHostMemory(neededBytes)) return;
  throw new PlatformError("memory_unavailable", `the machine has not ${Math.round(floorBytes() + neededBytes)} bytes of memory left`, {
    publicMessage: "The machine has not enough memory left to start a sandbox. Killing or pausing sandboxes makes room",
  });
}

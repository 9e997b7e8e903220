import { totalmem } from "node:os";
import { PlatformError } from "@skerry/base";
import { availableMemoryBytes } from "@skerry/runtime";

const MAX_FLOOR_BYTES = 512 * 1024 * 1024;
const FLOOR_SHARE = 1 / 16;

/** Free memory that running sandboxes need. With less, the node starts none. Smaller on small hosts. */
function floorBytes(): number {
  return Math.min(MAX_FLOOR_BYTES, totalmem() * FLOOR_SHARE);
}

/** Whether the host has this much memory above the floor. */
export function hasHostMemory(neededBytes = 0): boolean {
  return availableMemoryBytes() - neededBytes >= floorBytes();
}

/**
 * Throws PlatformError("memory_unavailable") when the host does not have this much memory above the floor. Otherwise the kernel would choose a
 * process to kill, perhaps in another sandbox.
 */
export function assertHostMemory(neededBytes = 0): void {
  if (hasHostMemory(neededBytes)) return;
  throw new PlatformError("memory_unavailable", `the host does not have ${Math.round(floorBytes() + neededBytes)} bytes of free memory`, {
    publicMessage: "The machine does not have enough free memory to start a sandbox. Killing or pausing sandboxes makes room",
  });
}

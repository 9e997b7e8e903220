import type { SandboxSize } from "@skerry/store";
import { invalid, validationError } from "../errors.ts";

/** What a request says about the size of a template's sandboxes. */
export interface GivenSize {
  readonly cpuCount?: number | undefined;
  readonly memoryMB?: number | undefined;
  readonly minFreeDiskMb?: number | undefined;
}

const DEFAULT_CPU = 2;
const DEFAULT_MEMORY_MB = 1024;
const MIN_MEMORY_MB = 128;
/** Free space of a sandbox: its disk holds only what it writes itself. */
const DEFAULT_DISK_MB = 10_240;

/** The size of a build. Throws when it is not allowed, or larger than `largest`. More free disk space than the platform gives is not an error. */
export function buildSizeOf(given: GivenSize, largest: SandboxSize): SandboxSize {
  const { minFreeDiskMb = 0 } = given;
  const { cpuCount = Math.min(DEFAULT_CPU, largest.cpuCount), memoryMB = Math.min(DEFAULT_MEMORY_MB, largest.memoryMb) } = given;
  // Both texts: clients look for either.
  if (cpuCount < 1) throw validationError("CPU count must be at least 1");
  if (cpuCount > largest.cpuCount) throw invalid(`CPU count must be at most ${largest.cpuCount}`);
  if (cpuCount !== 1 && cpuCount % 2 !== 0) throw invalid("CPU count must be 1 or an even number");
  if (memoryMB < MIN_MEMORY_MB) throw validationError(`Memory must be at least ${MIN_MEMORY_MB} MiB`);
  if (memoryMB % 2 !== 0) throw invalid("Memory must be divisible by 2");
  if (memoryMB > largest.memoryMb) throw invalid(`Memory can't be higher than ${largest.memoryMb} MiB`);
  return { cpuCount, memoryMb: memoryMB, diskSizeMb: Math.min(Math.max(DEFAULT_DISK_MB, minFreeDiskMb), largest.diskSizeMb) };
}

import { invalid, validationError } from "../errors.ts";

/** What a request says about the size of a template's sandboxes. */
export interface GivenSize {
  readonly cpuCount?: number | undefined;
  readonly memoryMB?: number | undefined;
  readonly minFreeDiskMb?: number | undefined;
}

export interface BuildSize {
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
}

const DEFAULT_CPU = 2;
const MAX_CPU = 32;
const DEFAULT_MEMORY_MB = 1024;
const MIN_MEMORY_MB = 128;
const MAX_MEMORY_MB = 65_536;
/** Free space of a sandbox: its disk holds only what it writes itself. */
const DEFAULT_DISK_MB = 10_240;
const MAX_DISK_MB = 102_400;

/** The size of a build. Throws when it is not allowed. More free disk space than the platform gives is not an error. */
export function buildSizeOf(given: GivenSize): BuildSize {
  const { cpuCount = DEFAULT_CPU, memoryMB = DEFAULT_MEMORY_MB, minFreeDiskMb = 0 } = given;
  // Both texts: clients look for either.
  if (cpuCount < 1) throw validationError("CPU count must be at least 1");
  if (cpuCount > MAX_CPU) throw invalid(`CPU count must be at most ${MAX_CPU}`);
  if (cpuCount !== 1 && cpuCount % 2 !== 0) throw invalid("CPU count must be 1 or an even number");
  if (memoryMB < MIN_MEMORY_MB) throw validationError(`Memory must be at least ${MIN_MEMORY_MB} MiB`);
  if (memoryMB % 2 !== 0) throw invalid("Memory must be divisible by 2");
  if (memoryMB > MAX_MEMORY_MB) throw invalid(`Memory can't be higher than ${MAX_MEMORY_MB} MiB`);
  return { cpuCount, memoryMb: memoryMB, diskSizeMb: Math.min(Math.max(DEFAULT_DISK_MB, minFreeDiskMb), MAX_DISK_MB) };
}

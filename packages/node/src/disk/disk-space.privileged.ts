import { readFileSync, statfsSync } from "node:fs";

export interface DiskSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Of the disk that `dir` is on. What its file system keeps for root does not count as free. */
export function readDiskSpace(dir: string): DiskSpace {
  const { bsize, bavail, blocks } = statfsSync(dir);
  return { freeBytes: bsize * bavail, totalBytes: bsize * blocks };
}

/** Bytes of files that this machine's kernel has in memory and not yet on any disk. */
export function readUnwrittenBytes(): number {
  const text = readFileSync("/proc/meminfo", "latin1");
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0);
  return (kib("Dirty") + kib("Writeback")) * 1024;
}

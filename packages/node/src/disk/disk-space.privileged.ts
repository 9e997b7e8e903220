import { readFileSync, statfsSync } from "node:fs";

export interface DiskSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Space of the disk that `dir` is on. Blocks that the file system reserves for root do not count as free. */
export function readDiskSpace(dir: string): DiskSpace {
  const { bsize, bavail, blocks } = statfsSync(dir);
  return { freeBytes: bsize * bavail, totalBytes: bsize * blocks };
}

/** Bytes of file content that the kernel of the host has not written to a disk yet. */
export function readUnwrittenBytes(): number {
  const text = readFileSync("/proc/meminfo", "latin1");
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0);
  return (kib("Dirty") + kib("Writeback")) * 1024;
}

import { statfs } from "node:fs/promises";
import { PlatformError } from "@skerry/base";

const GIB = 1024 ** 3;
const SHARE = 0.02;

/** Free space below which no new operation starts on a disk of this size: running sandboxes and the host need it. */
export function reserveBytesOf(totalBytes: number): number {
  return Math.max(GIB, Math.ceil(totalBytes * SHARE));
}

/**
 * Throws PlatformError("disk_space_unavailable") when the disk of `dir` has less free space than `reserveBytes` (default: by the size of the
 * disk) and `neededBytes` together.
 */
export async function assertFreeSpace(dir: string, { reserveBytes, neededBytes = 0 }: FreeSpace = {}): Promise<void> {
  const { bsize, bavail, blocks } = await statfs(dir);
  const free = bsize * bavail;
  const least = (reserveBytes ?? reserveBytesOf(bsize * blocks)) + neededBytes;
  if (free >= least) return;
  throw new PlatformError("disk_space_unavailable", `${dir} has ${free} bytes free of the ${least} that this takes`, {
    publicMessage: "There is not enough free disk space on the machine",
  });
}

export interface FreeSpace {
  readonly reserveBytes?: number | undefined;
  readonly neededBytes?: number;
}

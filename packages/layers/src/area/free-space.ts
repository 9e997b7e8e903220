import { statfs } from "node:fs/promises";
import { PlatformError } from "@skerry/base";

const GIB = 1024 ** 3;
const SHARE = 0.02;

/** What is left free on a disk of this size when nothing new may begin: what runs on it, and the machine, need room to go on. */
export function reserveBytesOf(totalBytes: number): number {
  return Math.max(GIB, Math.ceil(totalBytes * SHARE));
}

/** Throws PlatformError("capacity_unavailable") when less than the reserve is free on the disk of `dir`. */
export async function assertFreeSpace(dir: string, reserveBytes?: number): Promise<void> {
  const { bsize, bavail, blocks } = await statfs(dir);
  const free = bsize * bavail;
  const reserve = reserveBytes ?? reserveBytesOf(bsize * blocks);
  if (free >= reserve) return;
  throw new PlatformError("capacity_unavailable", `${dir} has ${free} bytes free, and ${reserve} are kept back`, {
    publicMessage: "no disk space for another sandbox on this machine",
  });
}

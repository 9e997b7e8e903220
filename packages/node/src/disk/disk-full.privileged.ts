import { isOutOfSpace, PlatformError, SubprocessError } from "@skerry/base";
import { reserveBytesOf } from "@skerry/layers";
import { readDiskSpace } from "./disk-space.privileged.ts";

/** What the disk guard keeps free on a disk of this size: half of what no new sandbox may take. */
export function floorBytesOf(totalBytes: number): number {
  return reserveBytesOf(totalBytes) / 2;
}

/** Throws PlatformError("disk_full") when less than that is free on the disk of `dir`. */
export function assertAboveFloor(dir: string): void {
  const { freeBytes, totalBytes } = readDiskSpace(dir);
  if (freeBytes < floorBytesOf(totalBytes))
    throw new PlatformError("disk_full", `${dir} has ${freeBytes} bytes free, and more are kept free`);
}

/** Whether something failed because the disk of `dir` is full, and not only the one of a sandbox. */
export function isDiskFull(error: unknown, dir: string): boolean {
  if (error instanceof PlatformError && error.code === "disk_full") return true;
  const hasOwnWords = error instanceof PlatformError && error.publicMessage !== undefined && error.code !== "image_not_written";
  if (hasOwnWords || !saysSo(error)) return false;
  const { freeBytes, totalBytes } = readDiskSpace(dir);
  return freeBytes < floorBytesOf(totalBytes);
}

/** A runtime says it in words. */
function saysSo(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    const words = each instanceof SubprocessError ? each.stderr : each.message;
    if (isOutOfSpace(each) || /no space left on device/i.test(words)) return true;
  }
  return false;
}

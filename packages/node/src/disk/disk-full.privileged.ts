import { isOutOfSpace, PlatformError, SubprocessError } from "@skerry/base";
import { reserveBytesOf } from "@skerry/layers";
import { readDiskSpace } from "./disk-space.privileged.ts";

/** Free space that the disk guard preserves on a disk of this size: half of the space that new sandboxes may not use. */
export function floorBytesOf(totalBytes: number): number {
  return reserveBytesOf(totalBytes) / 2;
}

/** Throws PlatformError("disk_full") if the disk of `dir` has less free space than the disk guard preserves. */
export function assertAboveFloor(dir: string): void {
  const { freeBytes, totalBytes } = readDiskSpace(dir);
  if (freeBytes < floorBytesOf(totalBytes))
    throw new PlatformError("disk_full", `${dir} has only ${freeBytes} bytes free, and the disk guard preserves more`);
}

/** Whether an operation failed because the disk of `dir` is full, and not only the disk of a sandbox. */
export function isDiskFull(error: unknown, dir: string): boolean {
  if (error instanceof PlatformError && error.code === "disk_full") return true;
  const hasOwnWords = error instanceof PlatformError && error.publicMessage !== undefined && error.code !== "image_not_written";
  if (hasOwnWords || !saysSo(error)) return false;
  const { freeBytes, totalBytes } = readDiskSpace(dir);
  return freeBytes < floorBytesOf(totalBytes);
}

/** Runtimes report a full disk in their messages only. */
function saysSo(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    const words = each instanceof SubprocessError ? each.stderr : each.message;
    if (isOutOfSpace(each) || /no space left on device/i.test(words)) return true;
  }
  return false;
}

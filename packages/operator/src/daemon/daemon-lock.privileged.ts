// Who runs the platform of a data folder, known from the kernel: each `serve` has a shared lock on one file of the folder for as long
// as it lives. A lock goes with its process, however that ends, so it is never stale, and no pid of it can be another's.
//
// The file is for this alone: a POSIX lock also ends when its process closes any descriptor of the file. `flock` would not, but the
// kernel tells nobody who has one.

import { closeSync, openSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import { findSharer, shareFile } from "@skerry/base/linux";

/** For the life of this process. False where that can't be: there is no such folder, or it can't be written to. */
export function holdDaemonLock(file: string): boolean {
  let fd: number;
  try {
    fd = openSync(file, "a+", 0o600);
  } catch {
    return false;
  }
  return shareFile(fd);
}

/** The pid of a process that has the lock, 0 for one that can't be seen from here. Undefined when nobody has it, or this user may not ask. */
export function findLockHolder(file: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
  try {
    return findSharer(fd);
  } finally {
    closeSync(fd);
  }
}

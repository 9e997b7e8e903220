// Each `serve` process holds a shared lock on one file of its data folder, so the kernel knows which processes run the platform. The
// kernel releases the lock when the process ends, so it is never stale and never names the pid of another process.
//
// The file has no other use: a POSIX lock also ends when its process closes any descriptor of the file. `flock` has no such rule, but
// the kernel does not tell who holds one.

import { closeSync, openSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import { findSharer, shareFile } from "@skerry/base/linux";

/** Takes the lock until this process ends. Returns false if the folder does not exist or is read-only. */
export function holdDaemonLock(file: string): boolean {
  let fd: number;
  try {
    fd = openSync(file, "a+", 0o600);
  } catch {
    return false;
  }
  return shareFile(fd);
}

/** Pid of a process that holds the lock; 0 if the process is in another pid namespace. Undefined if nobody holds it or the file is unreadable. */
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

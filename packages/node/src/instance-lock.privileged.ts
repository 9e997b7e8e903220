// At most one process at a time may own the resources of an instance on this host. A second one would remove the slots of the first as
// leftovers. The lock is a kernel lock (flock) on a file that only root can open. The kernel releases it when its process ends, so it is
// never stale.

import { closeSync, fstatSync, lstatSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isOutOfSpace, PlatformError } from "@skerry/base";
import { lockFile } from "@skerry/base/linux";

export interface InstanceLock {
  release(): void;
}

/** Preconditions: `dir`, the node's own folder, exists. Throws PlatformError("already_running") when another process has it. */
export function lockInstance(dir: string): InstanceLock {
  const own = take(join(dir, "instance.lock"));
  try {
    const earlier = lstatSync(lockOfEarlierVersions(dir), { throwIfNoEntry: false })?.isFile() && take(lockOfEarlierVersions(dir));
    return {
      release() {
        if (earlier) earlier.release();
        own.release();
      },
    };
  } catch (error) {
    own.release();
    throw error;
  }
}

/**
 * Versions up to November 2026 lock a file `lock`, and release every sandbox whose record they can't read. So they must not start
 * any more: where a directory has that name, they stop at once and change nothing. Preconditions: the lock is held.
 */
export function keepOutEarlierVersions(dir: string): void {
  const path = lockOfEarlierVersions(dir);
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    rmSync(path, { force: true });
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // A full disk must not keep a node from starting. The next start tries again.
    if (!isOutOfSpace(error)) throw error;
  }
}

const lockOfEarlierVersions = (dir: string) => join(dir, "lock");

function take(path: string): InstanceLock {
  const fd = openSync(path, "w", 0o600);
  if (!lockFile(fd)) {
    const holder = nameHolder(fstatSync(fd).ino);
    closeSync(fd);
    throw new PlatformError(
      "already_running",
      `another process (${holder}) runs the node of this data folder: stop it first (./skerry down; where that does not find it: kill it)`,
    );
  }
  return { release: () => closeSync(fd) };
}

/** For messages only: a file on another file system may have the same inode number. */
function nameHolder(inode: number): string {
  const locks = readFileSync("/proc/locks", "utf8").split("\n");
  const pids = locks.flatMap(
    (line) =>
      line
        .match(/ FLOCK +\S+ +\S+ +(\d+) [\da-f]+:[\da-f]+:(\d+) /)
        ?.slice(1, 3)
        .join(":") ?? [],
  );
  const found = pids.filter((entry) => entry.endsWith(`:${inode}`)).map((entry) => entry.split(":")[0]);
  return found.length > 0 ? `pid ${[...new Set(found)].join(" or ")}` : "which can't be seen from here";
}

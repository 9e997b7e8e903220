// A disk file: a sparse file with an ext4 file system, mounted through a loop device.
//
// The file system has a journal: it is consistent after a power loss, and `discard` returns the blocks of deleted files in the background.
// Without a journal, each deletion would wait for that. Direct I/O avoids caching data twice, and makes a flush five times as fast.

import { closeSync, constants, openSync, statSync, utimesSync } from "node:fs";
import { open, stat, statfs, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import { errnoOf } from "@skerry/base";
import {
  ioctlInBackground,
  MS_BIND,
  MS_NODEV,
  MS_NOSUID,
  MS_RDONLY,
  MS_REMOUNT,
  mount,
  mountInBackground,
  syncFilesystemInBackground,
  unmountInBackground,
} from "@skerry/base/linux";
import { diskFileSizeFor } from "./disk-file-size.ts";
import { type DiskFileSkeleton, makeSkeleton, writeSkeleton } from "./disk-file-skeleton.privileged.ts";
import { attachLoopDevice } from "./loop-device.privileged.ts";

const KEPT = 8;
/** 10 s in all: on a busy machine, a process that is just starting holds its copy of a mount for longer than a moment. */
const ATTEMPTS = 200;
const RELEASE_PAUSE_MS = 50;
const LARGEST_KEPT_MB = 65_536;
/** Tables that were never written are holes of the disk file, which read as zeros: the kernel need not write zeros there later. */
const MOUNT_DATA = "discard,noinit_itable,errors=remount-ro";

// linux/fs.h, fs/ext4/ext4.h
const FS_IOC_SETFLAGS = 0x40086602;
const FS_NOCOW_FL = 0x00800000;
const EXT4_IOC_SHUTDOWN = 0x8004587d;
const EXT4_GOING_FLAGS_NOLOGFLUSH = 2;
const BTRFS_MAGIC = 0x9123683e;

/** Makes disk files, and remembers the content of empty ones for the last few sizes. */
export class DiskFileMaker {
  readonly #skeletons = new Map<number, Promise<DiskFileSkeleton>>();

  /** `isOnlyOne`: no other disk file of this size follows, so its content is not remembered. Preconditions: `path` is a real path and does not exist. */
  async make(path: string, sizeMb: number, { isOnlyOne = false } = {}): Promise<void> {
    const known = this.#skeletons.get(sizeMb);
    const skeleton = await (isOnlyOne ? (known ?? makeSkeleton(diskFileSizeFor(sizeMb))) : this.#skeletonOf(sizeMb));
    await using file = await open(path, "wx", 0o600);
    const { type } = await statfs(path);
    if (type === BTRFS_MAGIC) await writeInPlace(file.fd, path);
    await writeSkeleton(file, skeleton);
  }

  async #skeletonOf(sizeMb: number): Promise<DiskFileSkeleton> {
    const known = this.#skeletons.get(sizeMb);
    if (known) return known;
    const size = diskFileSizeFor(sizeMb);
    const making = makeSkeleton(size);
    // The content of huge disk files takes too much memory.
    if (sizeMb <= LARGEST_KEPT_MB) this.#skeletons.set(sizeMb, making);
    try {
      return await making;
    } catch (error) {
      this.#skeletons.delete(sizeMb);
      throw error;
    } finally {
      const [oldest] = this.#skeletons.keys();
      if (this.#skeletons.size > KEPT && oldest !== undefined) this.#skeletons.delete(oldest);
    }
  }
}

/** btrfs would copy every changed block, and its checksums do not work with direct I/O. */
async function writeInPlace(fd: number, subject: string): Promise<void> {
  const flags = Buffer.alloc(8);
  flags.writeUInt32LE(FS_NOCOW_FL);
  await ioctlInBackground({ fd, request: FS_IOC_SETFLAGS, argument: flags, subject });
}

export interface DiskFileMount {
  readonly diskFile: string;
  readonly target: string;
  readonly readOnly: boolean;
  /** Set-user-id programs do not work. */
  readonly noSetId?: boolean;
}

/**
 * Mounts a disk file, unless it is mounted. Device nodes do not work in it; set-user-id programs do, as everywhere in a sandbox. If the kernel
 * made the file system read-only after an error of the host's disk, it is mounted again for writing.
 */
export async function mountDiskFile(options: DiskFileMount): Promise<void> {
  const { target, readOnly } = options;
  if (isMountPoint(target)) {
    setMount(target, options);
    if (readOnly || isWritable(target)) return;
    await unmountInBackground(target, { detach: true });
  }
  await mountAnew(options);
}

/** Mounts it again for writing. Data that could not be written while the host's disk was full is lost. */
export async function remountDiskFile({ diskFile, target }: { diskFile: string; target: string }): Promise<void> {
  if (isMountPoint(target)) await unmountInBackground(target, { detach: true });
  await mountAnew({ diskFile, target, readOnly: false });
}

/**
 * A process of the host that is just starting may hold a copy of the old mount for a moment. Until it releases the copy, the read-only file
 * system stays: the kernel refuses to mount the device for writing (EBUSY), or shows the read-only file system again.
 */
async function mountAnew(options: DiskFileMount): Promise<void> {
  const { target, readOnly } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await mountDevice(options);
      if (readOnly || attempt === ATTEMPTS || isWritable(target)) return;
      await unmountInBackground(target, { detach: true });
    } catch (error) {
      if (errnoOf(error) !== "EBUSY" || attempt === ATTEMPTS) throw error;
    }
    await setTimeout(RELEASE_PAUSE_MS);
  }
}

async function mountDevice({ diskFile, target, readOnly, noSetId = false }: DiskFileMount): Promise<void> {
  const device = await attachLoopDevice(diskFile);
  const options = { source: device.path, target, type: "ext4", data: MOUNT_DATA };
  try {
    await mountInBackground({ ...options, flags: flagsOf({ readOnly, noSetId }) });
  } catch (error) {
    if (!readOnly || errnoOf(error) !== "EBUSY") throw error;
    // The file system is still mounted for writing somewhere, because another process holds an old mount. This mount shares it.
    await mountInBackground({ ...options, flags: flagsOf({ readOnly: false, noSetId }) });
    setMount(target, { readOnly, noSetId });
  } finally {
    device.close();
  }
}

/** Sets whether this mount is read-only. Earlier writes may not be on the disk yet. */
export function setMount(target: string, about: Pick<DiskFileMount, "readOnly" | "noSetId">): void {
  mount({ source: "none", target, type: "none", flags: MS_REMOUNT | MS_BIND | flagsOf(about) });
}

function flagsOf({ readOnly, noSetId = false }: Pick<DiskFileMount, "readOnly" | "noSetId">): number {
  return MS_NODEV | (readOnly ? MS_RDONLY : 0) | (noSetId ? MS_NOSUID : 0);
}

/** Unmounts, after everything is in the disk file and the disk file is on the disk. */
export async function unmountDiskFile({ diskFile, target }: { diskFile: string; target: string }): Promise<void> {
  while (isMountPoint(target)) {
    await syncFilesystem(target);
    await unmountInBackground(target, { detach: true });
  }
  await syncFile(diskFile);
}

/** Writes all data to the disk; the mount stays. A file system that an error has made read-only writes no more data. */
export async function syncDiskFile({ diskFile, target }: { diskFile: string; target: string }): Promise<void> {
  if (isMountPoint(target) && isWritable(target)) await syncFilesystem(target);
  await syncFile(diskFile);
}

/** Removes a disk file and its mount, however far their creation got. Data that is not written yet is discarded, not flushed. */
export async function removeDiskFile({ diskFile, target }: { diskFile: string; target: string }): Promise<void> {
  while (isMountPoint(target)) {
    await abandonFilesystem(target);
    await unmountInBackground(target, { detach: true });
  }
  try {
    await unlink(diskFile);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

async function abandonFilesystem(target: string): Promise<void> {
  const how = Buffer.alloc(4);
  how.writeUInt32LE(EXT4_GOING_FLAGS_NOLOGFLUSH);
  const fd = openSync(target, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await ioctlInBackground({ fd, request: EXT4_IOC_SHUTDOWN, argument: how, subject: target });
  } finally {
    closeSync(fd);
  }
}

/** Syncs the whole file system of `path`. */
export async function syncFilesystem(path: string): Promise<void> {
  const fd = openSync(path, "r");
  try {
    await syncFilesystemInBackground(fd, path);
  } finally {
    closeSync(fd);
  }
}

/** Syncs the file and the directories of its path. */
async function syncFile(path: string): Promise<void> {
  for (const each of [path, dirname(path), dirname(dirname(path))]) {
    const file = await open(each, "r");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}

/** Bytes that a disk file takes on the host's disk. */
export async function diskFileHostBytes(diskFile: string): Promise<number> {
  return (await stat(diskFile)).blocks * 512;
}

/** Tries to write, which takes no space: newer kernels do not report a file system as read-only after an error. */
function isWritable(path: string): boolean {
  try {
    const now = new Date();
    utimesSync(path, now, now);
    return true;
  } catch {
    return false;
  }
}

export function isMountPoint(path: string): boolean {
  const own = statSync(path, { throwIfNoEntry: false });
  return own !== undefined && own.dev !== statSync(dirname(path)).dev;
}

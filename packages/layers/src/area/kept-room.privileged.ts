// What a limited area reserves of its own file system, in a directory beside `upper` that guests cannot reach:
//
//   r/0 … r/15  spare inodes. Mounting an overlay needs a directory and a few files. Without free inodes the kernel mounts it read-only, or
//               not at all, so the spare inodes are released during the mount. Blocks are available in any case: ext4 reserves 2 % for
//               itself, up to 16 MiB, and can be told to reserve less.
//   r/held      allocated blocks that are never written: as many as the areas below use. So the frozen areas below a sandbox count towards
//               its size, and `df` shows that. Unwritten blocks take no space on the host's disk.

import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { allocate } from "@skerry/base/linux";

const MIB = 2 ** 20;
const SPARE_INODES = 16;
/** With fewer free inodes, or less free space, the room for a mount is made first. */
const FEW_INODES = SPARE_INODES;
const LITTLE_BYTES = MIB;
/** Space that stays free above a chain that uses the whole size: deleting files also needs some. */
const LEAST_FREE_BYTES = MIB;

/** Preconditions: `fs` is the root of a new file system. */
export function keepRoom(fs: string): void {
  mkdirSync(roomOf(fs), { mode: 0o700 });
  for (const file of sparesOf(fs)) writeFileSync(file, "");
}

/** Runs `work` with the reserved inodes and blocks free, because the guest may have left none. Nothing else writes at the same time. */
export function withRoom<T>(fs: string, work: () => T): T {
  const { ffree, bavail, bsize } = statfsSync(fs);
  const spares = ffree < FEW_INODES ? sparesOf(fs) : [];
  for (const file of spares) rmSync(file, { force: true });
  const held = bavail * bsize < LITTLE_BYTES ? holdLessBack(fs) : undefined;
  try {
    return work();
  } finally {
    held?.restore();
    // Areas of earlier versions have no spare inodes. They get some if there is room.
    if (spares.length > 0) tryTo(() => mkdirSync(roomOf(fs), { recursive: true, mode: 0o700 }));
    for (const file of spares) tryTo(() => writeFileSync(file, ""));
  }
}

/** Reserves `bytes`, or less so that LEAST_FREE_BYTES stay free. Replaces the reservation of earlier calls. */
export function holdBytes(fs: string, bytes: number): void {
  const now = heldBytes(fs);
  const { bavail, bsize } = statfsSync(fs);
  const most = now + bavail * bsize - LEAST_FREE_BYTES;
  const wanted = Math.max(0, Math.min(bytes, most));
  if (Math.abs(wanted - now) < MIB) return;
  mkdirSync(roomOf(fs), { recursive: true, mode: 0o700 });
  const fd = openSync(heldOf(fs), "a", 0o600);
  try {
    if (wanted < now) ftruncateSync(fd, wanted);
    else allocate(fd, wanted);
  } finally {
    closeSync(fd);
  }
}

/** Bytes that the files of this area use, without its reservation for the areas below. */
export function ownBytes(fs: string): number {
  const { blocks, bfree, bsize } = statfsSync(fs);
  return Math.max(0, (blocks - bfree) * bsize - heldBytes(fs));
}

function heldBytes(fs: string): number {
  return (statSync(heldOf(fs), { throwIfNoEntry: false })?.blocks ?? 0) * 512;
}

/** Returns undefined if the kernel's settings cannot be written, as in some containers. */
function holdLessBack(fs: string): { restore(): void } | undefined {
  const { dev } = statSync(fs);
  const numbers = `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`;
  try {
    const setting = join("/sys/fs/ext4", basename(readlinkSync(`/sys/dev/block/${numbers}`)), "reserved_clusters");
    const before = readFileSync(setting, "utf8").trim();
    writeFileSync(setting, "0");
    return { restore: () => tryTo(() => writeFileSync(setting, before)) };
  } catch {
    return undefined;
  }
}

/** A failure here leaves less reserved for the next mount, and does not affect this one. */
function tryTo(work: () => void): void {
  try {
    work();
  } catch {}
}

const roomOf = (fs: string) => join(fs, "r");
const heldOf = (fs: string) => join(roomOf(fs), "held");
const sparesOf = (fs: string) => Array.from({ length: SPARE_INODES }, (_, index) => join(roomOf(fs), String(index)));

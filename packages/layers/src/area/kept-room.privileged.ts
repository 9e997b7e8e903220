// What a limited area keeps back of its own file system, in a folder beside `upper` that no guest gets at:
//
//   r/0 … r/15  spare inodes. To mount an overlay takes a folder and a few files, and on a file system without any left the kernel mounts it
//               read-only, or not at all. So what is kept back is given up for the moment of the mount. Blocks for that there are anyway:
//               ext4 holds 2 % back for what it can't go on without, up to 16 MiB, and can be told to hold back less.
//   r/held      blocks that nobody writes: as many as the areas below hold. A sandbox that lies on frozen areas has them within its size,
//               and `df` says so. They are allocated and not written, which takes nothing of the machine's disk.

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
/** Below these a mount may not find what it needs. */
const FEW_INODES = SPARE_INODES;
const LITTLE_BYTES = MIB;
/** What stays free above a chain that is as large as it may be: to delete something takes room, too. */
const LEAST_FREE_BYTES = MIB;

/** Preconditions: `fs` is the root of a new file system. */
export function keepRoom(fs: string): void {
  mkdirSync(roomOf(fs), { mode: 0o700 });
  for (const file of sparesOf(fs)) writeFileSync(file, "");
}

/** Does something for which there has to be room, and for which the guest may have left none. Nothing else writes meanwhile. */
export function withRoom<T>(fs: string, work: () => T): T {
  const { ffree, bavail, bsize } = statfsSync(fs);
  const spares = ffree < FEW_INODES ? sparesOf(fs) : [];
  for (const file of spares) rmSync(file, { force: true });
  const held = bavail * bsize < LITTLE_BYTES ? holdLessBack(fs) : undefined;
  try {
    return work();
  } finally {
    held?.restore();
    // Areas that were made before there were spares get some when they can.
    if (spares.length > 0) tryTo(() => mkdirSync(roomOf(fs), { recursive: true, mode: 0o700 }));
    for (const file of spares) tryTo(() => writeFileSync(file, ""));
  }
}

/** Holds as many blocks as `bytes` are, or all but a last bit of room. Other calls before count no more. */
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

/** What the files of this area take of its file system, without what it holds for others. */
export function ownBytes(fs: string): number {
  const { blocks, bfree, bsize } = statfsSync(fs);
  return Math.max(0, (blocks - bfree) * bsize - heldBytes(fs));
}

function heldBytes(fs: string): number {
  return (statSync(heldOf(fs), { throwIfNoEntry: false })?.blocks ?? 0) * 512;
}

/** Where the kernel's settings can't be written, in some containers, there is no more room than there is. */
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

/** What can't be done now costs the next one its room, and this one nothing. */
function tryTo(work: () => void): void {
  try {
    work();
  } catch {}
}

const roomOf = (fs: string) => join(fs, "r");
const heldOf = (fs: string) => join(roomOf(fs), "held");
const sparesOf = (fs: string) => Array.from({ length: SPARE_INODES }, (_, index) => join(roomOf(fs), String(index)));

// Files that have several names in a layer, and that a root above the layer has changed.
//
// With `index=on`, overlayfs keeps such a file one file: it records the changed copy in `work/index` and shows it under all names. `upper`
// contains only the names that were written to. That is enough while `upper` is written to. Once `upper` is a layer itself, its index is not
// used any more, and the other names would show the old content. So those names are written into `upper` first. They are found in the layer by
// the file's inode number.
//
// An entry of the index is a hard link to the file in `upper`. Its name is the file handle of the original in the layer's file system.

import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, PlatformError, runCommand, SubprocessError } from "@skerry/base";
import { findXattr, openByHandle, openMemoryFile, setTimes } from "@skerry/base/linux";
import { Pace, Place } from "./area/descent.privileged.ts";
import type { RootMount } from "./root-mount.privileged.ts";

/** The longest time for writing names. The guest stands still meanwhile and may have millions of names, so more is refused. */
const MOST_MS = 60_000;
const MOST_LIST_BYTES = 64 * 2 ** 20;
/** With more files than this, `find` does not get the number of each. */
const FEW_FILES = 64;
/** "U": so many names more than the file in `upper` has; that one has one more, the index's. */
const ALL_IN_UPPER = "U-1";
const NLINK = "trusted.overlay.nlink";

// fs/overlayfs/overlayfs.h, struct ovl_fb: version, magic number, length, flags, type, the file system's identity, the file's handle.
const TYPE_AT = 4;
const FILE_SYSTEM = { from: 5, to: 21 };

/** What an index says of one file: on which file system it is, and what it is called there. */
interface Original {
  readonly fileSystem: string;
  readonly type: number;
  readonly id: Uint8Array;
}

/** Those of the layers that are on one file system. */
interface FileSystem {
  readonly layers: string[];
  /** A folder on it, open. */
  readonly fd: number;
  /** Numbers of the files that are looked for. */
  readonly wanted: Set<bigint>;
}

/** Whether a root has changed files of which `upper` may lack names. Preconditions: no other overlay writes to it. */
export async function hasSplitLinks(work: string): Promise<boolean> {
  return (await splitFiles(work)).length > 0;
}

/**
 * Writes all names of the changed files that the root shows into `upper`. The content of the root does not change. Throws
 * PlatformError("links_not_kept") when there are too many names, or no room for them; the root is then unchanged. Preconditions: the root is
 * mounted, and no guest writes to it.
 */
export async function linkUp({ layers, work, target }: Pick<RootMount, "layers" | "work" | "target">): Promise<void> {
  const deadline = performance.now() + MOST_MS;
  const originals = await splitFiles(work);
  if (originals.length === 0) return;
  const fileSystems = openFileSystems(layers);
  try {
    await locate(originals, fileSystems);
    for (const { layers: found, wanted } of fileSystems) {
      for (const layer of wanted.size > 0 ? found : []) {
        const names = await namesIn(layer, wanted, deadline - performance.now());
        await touchAll(target, { names, wanted, deadline });
      }
    }
  } catch (cause) {
    throw refusalOf(cause);
  } finally {
    for (const { fd } of fileSystems) closeSync(fd);
  }
}

/** Whether overlayfs has an index in this work directory. */
export function hasIndex(work: string): boolean {
  return existsSync(indexOf(work));
}

/** Removes the index of an `upper` that is a layer now, because each of its entries counts as a name of the file. */
export async function removeIndex(work: string): Promise<void> {
  await rm(indexOf(work), { recursive: true, force: true });
}

/** The index of a work directory. */
export function indexOf(work: string): string {
  return join(work, "index");
}

async function splitFiles(work: string): Promise<Original[]> {
  const index = indexOf(work);
  const pace = new Pace();
  const found: Original[] = [];
  for (const name of existsSync(index) ? readdirSync(index) : []) {
    // Other names are temporary files of overlayfs, such as `#1f`.
    if (!/^00fb(?:[0-9a-f]{2}){19,}$/.test(name)) continue;
    if (findXattr(Buffer.from(join(index, name)), NLINK)?.toString() !== ALL_IN_UPPER) found.push(parseHandle(Buffer.from(name, "hex")));
    await pace.keep();
  }
  return found;
}

function parseHandle(bytes: Buffer): Original {
  const { from, to } = FILE_SYSTEM;
  return { type: bytes.readUInt8(TYPE_AT), fileSystem: bytes.toString("hex", from, to), id: bytes.subarray(to) };
}

function openFileSystems(layers: readonly string[]): FileSystem[] {
  const byDevice = new Map<bigint, FileSystem>();
  for (const layer of layers) {
    const { dev } = statSync(layer, { bigint: true });
    const known = byDevice.get(dev);
    if (known) known.layers.push(layer);
    else byDevice.set(dev, { layers: [layer], fd: openSync(layer, constants.O_RDONLY | constants.O_DIRECTORY), wanted: new Set() });
  }
  return [...byDevice.values()];
}

/** Where each is, and what its number is there. A file system that has answered to an identity once is asked first for it. */
async function locate(originals: readonly Original[], fileSystems: readonly FileSystem[]): Promise<void> {
  const known = new Map<string, FileSystem>();
  const pace = new Pace();
  for (const original of originals) {
    const first = known.get(original.fileSystem);
    const at = (first ? [first, ...fileSystems] : fileSystems).find((each) => {
      const number = numberOf(original, each.fd);
      if (number !== undefined) each.wanted.add(number);
      return number !== undefined;
    });
    if (!at) throw new Error("no layer has a file that the index names");
    known.set(original.fileSystem, at);
    await pace.keep();
  }
}

function numberOf(original: Original, fd: number): bigint | undefined {
  const file = openByHandle(fd, original);
  if (file === undefined) return undefined;
  try {
    return fstatSync(file, { bigint: true }).ino;
  } finally {
    closeSync(file);
  }
}

/** Paths below a layer of what has one of these numbers, in the order of their folders. Names need not be text. */
async function namesIn(layer: string, wanted: ReadonlySet<bigint>, timeoutMs: number): Promise<Buffer[]> {
  const numbers = [...wanted].flatMap((number) => ["-o", "-inum", `${number}`]).slice(1);
  const which = wanted.size > FEW_FILES ? ["-links", "+1"] : ["(", ...numbers, ")"];
  const fd = openMemoryFile("names");
  try {
    const find = ["find", "-H", layer, "-xdev", "!", "-type", "d", ...which, "-fprintf", "/proc/self/fd/3", "%i %P\\0"];
    await runCommand("prlimit", [`--fsize=${MOST_LIST_BYTES}`, ...find], { timeoutMs: Math.max(1, timeoutMs), extraFds: [fd] });
    return parseNames(readAll(fd), wanted);
  } finally {
    closeSync(fd);
  }
}

function readAll(fd: number): Buffer {
  const bytes = Buffer.alloc(fstatSync(fd).size);
  readSync(fd, bytes, 0, bytes.length, 0);
  return bytes;
}

function parseNames(list: Buffer, wanted: ReadonlySet<bigint>): Buffer[] {
  const names: Buffer[] = [];
  for (let at = 0, end = list.indexOf(0); end >= 0; at = end + 1, end = list.indexOf(0, at)) {
    const space = list.indexOf(0x20, at);
    if (wanted.has(BigInt(list.toString("latin1", at, space)))) names.push(list.subarray(space + 1, end));
  }
  return names;
}

/** Sets the times of a file to their current values, which makes overlayfs write the name into `upper`. This works for every kind of file. */
async function touchAll(
  root: string,
  { names, wanted, deadline }: { names: readonly Buffer[]; wanted: ReadonlySet<bigint>; deadline: number },
): Promise<void> {
  const pace = new Pace();
  const keepTime = async () => {
    if (performance.now() > deadline) throw new TooManyError();
    await pace.keep();
  };
  const low = new Set([...wanted].map(lowBits));
  let open: { readonly folder: Buffer; readonly place: Place | undefined } | undefined;
  try {
    for (const path of names) {
      const slash = path.lastIndexOf(0x2f);
      const folder = path.subarray(0, Math.max(0, slash));
      if (!open?.folder.equals(folder)) {
        open?.place?.close();
        open = { folder, place: await placeOf(root, folder, keepTime) };
      }
      if (open.place) touch(open.place.path(path.subarray(slash + 1)), low);
      await keepTime();
    }
  } finally {
    open?.place?.close();
  }
}

/** Opens a directory of the root, if there is one at this path. A guest may have replaced it with something else. */
async function placeOf(root: string, folder: Buffer, keepTime: () => Promise<void>): Promise<Place | undefined> {
  const place = new Place(root);
  try {
    for (let at = 0; at < folder.length; ) {
      const slash = folder.indexOf(0x2f, at);
      const end = slash < 0 ? folder.length : slash;
      place.go(folder.subarray(at, end));
      at = end + 1;
      await keepTime();
    }
    return place;
  } catch (error) {
    place.close();
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

/**
 * The root numbers files of layers as the layer does, with the layer in the upper bits. What else is there now is no name of it. The count of
 * names says nothing: this may be the only one that is left, and `upper` has none.
 */
function touch(path: Buffer, wanted: ReadonlySet<number>): void {
  const about = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (about === undefined || about.isDirectory() || !wanted.has(lowBits(about.ino))) return;
  setTimes(path, about);
}

function lowBits(number: bigint): number {
  return Number(BigInt.asUintN(32, number));
}

class TooManyError extends Error {}

function refusalOf(cause: unknown): PlatformError {
  const hasNoRoom = ["ENOSPC", "EDQUOT"].includes(errnoOf(cause) ?? "");
  const isTooMuch =
    cause instanceof TooManyError || (cause instanceof SubprocessError && (cause.timedOut || cause.signalName === "SIGXFSZ"));
  const why = hasNoRoom ? "its disk has no room for that" : isTooMuch ? "they are too many" : "that failed";
  return new PlatformError("links_not_kept", "names of changed files could not be written into an upper", {
    publicMessage: `files that have several names (hard links) were changed in the sandbox and could not be kept together: ${why}`,
    cause,
  });
}

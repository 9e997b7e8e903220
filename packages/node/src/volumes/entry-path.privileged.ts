// Finds an entry by a path that a caller gave. Guests change the volume at the same time: no look-up leaves it, and nothing but a descriptor
// or a single name in an open directory is used afterwards.

import { closeSync, constants, fstatSync, type Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { errnoOf } from "@skerry/base";
import { type EntryOf, entryPath, O_PATH, openBeneath } from "@skerry/base/beneath";
import { volumeError } from "./volume-errors.ts";
import type { OpenVolume } from "./volume-store.privileged.ts";

const LONGEST_PATH = 4095;

export interface Entry {
  readonly name: string;
  readonly type: "file" | "directory" | "symlink" | "unknown";
  /** With a leading "/". */
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly atimeMs: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly target?: string;
}

/** The parts of a path; none for the root. Throws PlatformError("path_invalid"). */
export function partsOf(path: string): readonly string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path === "" || path.includes("\0") || Buffer.byteLength(path) > LONGEST_PATH)
    throw volumeError("path_invalid", "the path is malformed");
  if (parts.includes("..")) throw volumeError("path_invalid", 'the path must not contain ".."');
  return parts;
}

const joined = (parts: readonly string[]) => (parts.length === 0 ? "." : parts.join("/"));
export const shownPath = (parts: readonly string[]) => `/${parts.join("/")}`;

/** Runs `work` with a descriptor that names the entry, following links in the volume. It can be opened by `descriptorPath`. */
export async function withEntry<T>(volume: OpenVolume, path: string, work: (fd: number, about: Stats) => Promise<T>): Promise<T> {
  const fd = await openBeneath(volume.data, joined(partsOf(path)), { flags: O_PATH });
  try {
    return await work(fd, fstatSync(fd));
  } finally {
    closeSync(fd);
  }
}

/** Runs `work` with the parent directory, open for `syncFolder`, and the name of a path. Throws PlatformError("path_invalid") for the root. */
export async function withParent<T>(volume: OpenVolume, path: string, work: (place: EntryOf & { name: string }) => Promise<T>): Promise<T> {
  const parts = partsOf(path);
  const name = parts.at(-1);
  if (name === undefined) throw volumeError("path_invalid", "the path is the root of the volume");
  const folder = await openBeneath(volume.data, joined(parts.slice(0, -1)), { flags: constants.O_RDONLY | constants.O_DIRECTORY });
  try {
    return await work({ folder, name });
  } finally {
    closeSync(folder);
  }
}

export async function statEntry(volume: OpenVolume, path: string): Promise<Entry> {
  const parts = partsOf(path);
  if (parts.length === 0) return withEntry(volume, path, async (_fd, about) => entryOf("/", "/", about));
  return withParent(volume, path, (place) => statPlace(place, shownPath(parts)));
}

/** Follows no link. `path` is for the answer. */
export async function statPlace(place: EntryOf, path: string): Promise<Entry> {
  const about = await lstat(entryPath(place));
  const entry = entryOf(Buffer.from(place.name as Uint8Array).toString(), path, about);
  if (entry.type !== "symlink") return entry;
  try {
    return { ...entry, target: await readlink(entryPath(place)) };
  } catch (error) {
    // A guest has replaced it meanwhile.
    if (["EINVAL", "ENOENT"].includes(errnoOf(error) ?? "")) return entry;
    throw error;
  }
}

export function entryOf(name: string, path: string, about: Stats): Entry {
  const { size, mode, uid, gid, atimeMs, mtimeMs, ctimeMs } = about;
  return { name, path, type: typeOf(about), size, mode: mode & 0o7777, uid, gid, atimeMs, mtimeMs, ctimeMs };
}

function typeOf({ mode }: Stats): Entry["type"] {
  switch (mode & constants.S_IFMT) {
    case constants.S_IFREG:
      return "file";
    case constants.S_IFDIR:
      return "directory";
    case constants.S_IFLNK:
      return "symlink";
    default:
      return "unknown";
  }
}

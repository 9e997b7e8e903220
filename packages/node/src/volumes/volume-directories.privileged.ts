// The calls about entries of a volume: list, make, remove, and change owner and mode.

import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, fsync } from "node:fs";
import { chmod, chown, mkdir, open, opendir, rename, rmdir } from "node:fs/promises";
import { promisify } from "node:util";
import { errnoOf } from "@skerry/base";
import { DIRECTORY, descriptorPath, type EntryOf, entryPath, openBeneath, renameWithoutReplacing } from "@skerry/base/beneath";
import { type Entry, entryOf, partsOf, shownPath, statEntry, statPlace, withEntry, withParent } from "./entry-path.privileged.ts";
import { volumeError } from "./volume-errors.ts";
import type { OpenVolume } from "./volume-store.privileged.ts";

export interface Metadata {
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  readonly mode?: number | undefined;
}

const DIRECTORY_MODE = 0o755;
/** Each level takes an open directory. */
const DEEPEST = 64;

/** Throws PlatformError("invalid_argument"). */
export function checkedMetadata({ uid, gid, mode }: Metadata = {}): Metadata {
  if (mode !== undefined && mode > 0o7777) throw volumeError("invalid_argument", `not a mode: ${mode}`);
  // 2^32 - 1 means "unchanged" to the system.
  if ([uid, gid].includes(0xffffffff)) throw volumeError("invalid_argument", "not an id of a user or group: 4294967295");
  return { uid, gid, mode };
}

/** Everything below a directory, parents before children. Follows links to the directory itself, and none below it. */
export async function* listDirectory(volume: OpenVolume, path: string, depth: number): AsyncGenerator<Entry> {
  const fd = await openBeneath(volume.data, partsOf(path).join("/") || ".", { flags: DIRECTORY });
  try {
    yield* listBelow(fd, shownPath(partsOf(path)), Math.min(depth, DEEPEST));
  } finally {
    closeSync(fd);
  }
}

async function* listBelow(folder: number, path: string, depth: number): AsyncGenerator<Entry> {
  // Names of a guest need not be valid UTF-8.
  const names = await opendir(descriptorPath(folder), { encoding: "buffer" as BufferEncoding });
  for await (const { name } of names as unknown as AsyncIterable<{ name: Buffer }>) {
    const entry = await ifThere(() => statPlace({ folder, name }, `${path === "/" ? "" : path}/${name}`));
    if (!entry) continue;
    yield entry;
    if (depth <= 1 || entry.type !== "directory") continue;
    const below = await ifThere(() => openBeneath(folder, name, { flags: DIRECTORY | constants.O_NOFOLLOW, followLinks: false }));
    if (below === undefined) continue;
    try {
      yield* listBelow(below, entry.path, depth - 1);
    } finally {
      closeSync(below);
    }
  }
}

/** Undefined for what a guest has removed or replaced meanwhile. */
async function ifThere<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

export async function makeDirectory(
  volume: OpenVolume,
  { path, metadata, force }: { path: string; metadata: Metadata; force: boolean },
): Promise<Entry> {
  const parts = partsOf(path);
  if (force) await makeParents(volume, parts, metadata);
  if (parts.length === 0) {
    if (!force) throw volumeError("entry_exists", "the path exists already");
    return statEntry(volume, path);
  }
  return withParent(volume, path, async (place) => {
    try {
      await makeAt(volume, place, metadata);
    } catch (error) {
      if (!force || errnoOf(error) !== "EEXIST") throw error;
      const there = await statPlace(place, shownPath(parts));
      if (there.type !== "directory") throw volumeError("not_a_directory", "the path exists, and is not a directory");
      return there;
    }
    return statPlace(place, shownPath(parts));
  });
}

/** Makes the missing directories above a path. */
export async function makeParents(volume: OpenVolume, parts: readonly string[], metadata: Metadata): Promise<void> {
  for (let length = 1; length < parts.length; length += 1) {
    await withParent(volume, shownPath(parts.slice(0, length)), async (place) => {
      try {
        // A file there, or a link that leads nowhere, fails in the next round.
        await makeAt(volume, place, metadata);
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
    });
  }
}

/**
 * The directory gets its owner and mode in a folder that no guest sees. In its place, a guest could put another one there before the change.
 */
async function makeAt(volume: OpenVolume, place: EntryOf, { uid, gid, mode = DIRECTORY_MODE }: Metadata): Promise<void> {
  const parent = fstatSync(place.folder);
  const made = { folder: volume.staged, name: randomBytes(8).toString("hex") };
  const path = entryPath(made);
  await mkdir(path, { mode: 0o700 });
  try {
    await chown(path, uid ?? parent.uid, gid ?? parent.gid);
    await chmod(path, mode);
    await renameWithoutReplacing(made, place);
  } catch (error) {
    await rmdir(path);
    throw error;
  }
  await syncFolder(place.folder);
}

/** When it returns, the names in an open directory survive a loss of power. Opens nothing, so a change that was made is not refused after it. */
export const syncFolder = promisify(fsync);

/** The entry disappears as a whole. Its files are deleted later, by `VolumeStore.emptyTrashOf`. */
export async function removeEntry(volume: OpenVolume, path: string): Promise<void> {
  await withParent(volume, path, async (place) => {
    await rename(entryPath(place), entryPath({ folder: volume.trash, name: randomBytes(8).toString("hex") }));
    await syncFolder(place.folder);
  });
}

/** Follows links in the volume. Throws PlatformError("not_a_file") for devices, FIFOs and sockets. */
export async function setEntry(volume: OpenVolume, path: string, { uid, gid, mode }: Metadata): Promise<Entry> {
  const parts = partsOf(path);
  return withEntry(volume, path, async (fd, about) => {
    if (!about.isFile() && !about.isDirectory()) throw volumeError("not_a_file", "the path is neither a file nor a directory");
    const own = descriptorPath(fd);
    // Before the change: without a free descriptor, nothing is changed.
    await using handle = await open(own, constants.O_RDONLY | constants.O_NONBLOCK);
    if (uid !== undefined || gid !== undefined) await chown(own, uid ?? about.uid, gid ?? about.gid);
    if (mode !== undefined) await chmod(own, mode);
    await handle.sync();
    return entryOf(parts.at(-1) ?? "/", shownPath(parts), fstatSync(fd));
  });
}

// Reads and writes files of a volume as streams.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { errnoOf } from "@skerry/base";
import { descriptorPath, type EntryOf, entryPath, renameWithoutReplacing } from "@skerry/base/beneath";
import { crashPoint } from "../crash-points.ts";
import { type Entry, entryOf, partsOf, shownPath, statPlace, withEntry, withParent } from "./entry-path.privileged.ts";
import { type Metadata, makeParents, syncFolder } from "./volume-directories.privileged.ts";
import { volumeError } from "./volume-errors.ts";
import type { OpenVolume } from "./volume-store.privileged.ts";

const CHUNK_BYTES = 256 * 1024;
const FILE_MODE = 0o644;

export interface OpenFile {
  readonly entry: Entry;
  readonly handle: FileHandle;
}

/** Opens a file for reading, following links in the volume. The caller closes it. Never opens a device, a FIFO or a socket. */
export function openFile(volume: OpenVolume, path: string): Promise<OpenFile> {
  const parts = partsOf(path);
  return withEntry(volume, path, async (fd, about) => {
    if (about.isDirectory()) throw volumeError("is_a_directory", "the path is a directory");
    if (!about.isFile()) throw volumeError("not_a_file", "the path is not a file");
    // The same file, whatever its path leads to by now.
    const handle = await open(descriptorPath(fd), constants.O_RDONLY | constants.O_NONBLOCK);
    return { entry: entryOf(parts.at(-1) ?? "/", shownPath(parts), about), handle };
  });
}

/** The bytes from `offset` on, at most `length`. A file that becomes shorter meanwhile ends early. */
export async function* readFrom(handle: FileHandle, offset: number, length: number): AsyncGenerator<Uint8Array> {
  let left = length;
  for (let at = offset; left > 0; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, left)), 0, Math.min(CHUNK_BYTES, left), at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
    left -= bytesRead;
  }
}

export interface WriteRequest {
  readonly path: string;
  readonly metadata: Metadata;
  readonly force: boolean;
  /** Ends when the file is complete; throws when it will not be. */
  readonly data: AsyncIterable<Uint8Array>;
}

/** Stores a file, which appears as a whole. Resolves when it survives a loss of power. After a failure nothing has changed. */
export async function writeFile(volume: OpenVolume, { path, metadata, force, data }: WriteRequest): Promise<Entry> {
  const parts = partsOf(path);
  if (force) await makeParents(volume, parts, { uid: metadata.uid, gid: metadata.gid });
  return withParent(volume, path, async (place) => {
    const like = await metadataLike(place, { metadata, force });
    const staged = { folder: volume.staged, name: randomBytes(8).toString("hex") };
    const stagedPath = entryPath(staged);
    await using file = await open(stagedPath, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      for await (const chunk of data) await writeAll(file, chunk);
      await file.chown(like.uid, like.gid);
      await file.chmod(like.mode);
      await file.sync();
      crashPoint("volume.file-staged");
      if (force) await rename(stagedPath, entryPath(place));
      else await renameWithoutReplacing(staged, place);
    } catch (error) {
      await unlink(stagedPath);
      throw error;
    }
    await syncFolder(place.folder);
    return entryOf(place.name, shownPath(parts), await file.stat());
  });
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let done = 0; done < chunk.length; ) done += (await file.write(chunk, done)).bytesWritten;
}

/** Owner and mode of the new file. Refuses what will certainly fail before anything is sent. */
async function metadataLike(place: EntryOf & { name: string }, { metadata, force }: { metadata: Metadata; force: boolean }) {
  const there = await statIfThere(place);
  if (there && !force) throw volumeError("entry_exists", "the path exists already");
  if (there?.type === "directory") throw volumeError("is_a_directory", "the path is a directory");
  const replaced = there?.type === "file" ? there : undefined;
  const owner = replaced ?? (await parentOf(place));
  return { uid: metadata.uid ?? owner.uid, gid: metadata.gid ?? owner.gid, mode: metadata.mode ?? replaced?.mode ?? FILE_MODE };
}

const parentOf = ({ folder }: EntryOf) => statPlace({ folder, name: "." }, "");

async function statIfThere(place: EntryOf): Promise<Entry | undefined> {
  try {
    return await statPlace(place, "");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

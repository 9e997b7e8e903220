// Images on disk: `images/<id>/image.json` beside `images/<id>/memory/`. The record is written last and forced to disk, so a
// folder without one is an image whose writing was cut off. Whatever a paused sandbox needs is there when its pause is answered.

import { existsSync, linkSync, mkdirSync, readdirSync, rmdirSync, statSync, truncateSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";
import type { MemoryImage } from "@skerry/runtime";
import type { NodePaths } from "../paths.ts";
import { type ImageRecord, type MemoryFile, parseImageRecord, type StoredMemory } from "../records/image-record.ts";
import { readRecordFile, syncFolder, writeRecordDurably } from "../records/record-file.privileged.ts";
import { moveToTrash } from "../trash.privileged.ts";
import { checksumFile } from "./checksum-file.ts";

export class ImageStore {
  readonly #paths: NodePaths;
  readonly #records = new Map<string, ImageRecord>();
  readonly #damaged = new Set<string>();
  /** Whose memory was compared with its checksums since this process began, and is not written any more. */
  readonly #verified = new Set<string>();

  constructor(paths: NodePaths) {
    this.#paths = paths;
  }

  /** Reads what is there, then discards what was cut off. Throws PlatformError("record_unreadable") before it has changed anything. */
  load(): void {
    const all = readdirSync(this.#paths.images).map(
      (imageId) => [imageId, readRecordFile(this.#paths.image(imageId).record, parseImageRecord)] as const,
    );
    for (const [imageId, found] of all) {
      if (found === "damaged") this.#damaged.add(imageId);
      else if (found === "missing") this.discard(imageId);
      else this.#records.set(imageId, found.record);
    }
  }

  /**
   * Those whose record is there and can't be read: they can only be discarded. Nobody knows which disks they have, so no disk may
   * be taken for a stray one while there are any.
   */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  get(imageId: string): ImageRecord | undefined {
    return this.#records.get(imageId);
  }

  list(): ImageRecord[] {
    return [...this.#records.values()];
  }

  /** An empty folder for the memory of a new image. Throws PlatformError("already_exists"). */
  begin(imageId: string): string {
    const { dir, memory } = this.#paths.image(imageId);
    try {
      mkdirSync(dir, { mode: 0o700 });
    } catch (error) {
      if (errnoOf(error) === "EEXIST") throw new PlatformError("already_exists", `image ${imageId} exists`);
      throw error;
    }
    try {
      mkdirSync(memory, { mode: 0o700 });
    } catch (error) {
      rmdirSync(dir);
      throw error;
    }
    return memory;
  }

  /** Makes the memory that was written to it safe: forced to disk, with checksums. */
  async seal(image: MemoryImage): Promise<StoredMemory> {
    const { dir, ...rest } = image;
    const files: MemoryFile[] = [];
    for (const name of readdirSync(dir).sort()) {
      const path = join(dir, name);
      files.push({ name, ...(await checksumFile(path)) });
      const file = await open(path, "r+");
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
    }
    return { ...rest, files };
  }

  /** From now on the image is there. Replaces the record of one that is there already. */
  commit(record: ImageRecord): void {
    const { record: file } = this.#paths.image(record.imageId);
    writeRecordDurably(file, record);
    syncFolder(this.#paths.images);
    this.#records.set(record.imageId, record);
  }

  /** A second image with the memory of another one: the files are shared, not copied. */
  shareMemory(from: ImageRecord, imageId: string): void {
    const memory = this.begin(imageId);
    for (const { name } of from.memory?.files ?? []) linkSync(join(this.#paths.image(from.imageId).memory, name), join(memory, name));
  }

  /** Keeps only the disk of an image. */
  dropMemory(record: ImageRecord): ImageRecord {
    const { memory: _memory, ...disk } = record;
    this.commit(disk);
    this.#verified.delete(record.imageId);
    moveToTrash(this.#paths, this.#paths.image(record.imageId).memory);
    return disk;
  }

  /** The memory of an image, compared with its checksums. Throws PlatformError("image_unusable"). */
  async memoryOf(record: ImageRecord): Promise<MemoryImage> {
    const dir = this.#paths.image(record.imageId).memory;
    if (!record.memory) throw new PlatformError("image_unusable", "it has no memory");
    const { files, ...rest } = record.memory;
    if (this.#verified.has(record.imageId)) return { dir, ...rest };
    for (const file of files) await verify(join(dir, file.name), file);
    if (record.kind !== "pause") this.#verified.add(record.imageId);
    return { dir, ...rest };
  }

  /**
   * Removes an image, whole or half written. Its files are emptied first: a runtime whose checkpoint failed keeps them open
   * for as long as the sandbox runs. Not those that another image shares.
   */
  discard(imageId: string): void {
    const { dir, memory } = this.#paths.image(imageId);
    const isWhole = this.#records.delete(imageId);
    this.#damaged.delete(imageId);
    this.#verified.delete(imageId);
    if (!isWhole && existsSync(memory)) for (const name of readdirSync(memory)) truncateUnlessShared(join(memory, name));
    moveToTrash(this.#paths, dir);
  }
}

async function verify(path: string, file: MemoryFile): Promise<void> {
  let found: { size: number; crc32: number };
  try {
    found = await checksumFile(path);
  } catch (error) {
    throw new PlatformError("image_unusable", `${file.name} can't be read (${errnoOf(error) ?? "no error code"})`, { cause: error });
  }
  if (found.size !== file.size) throw new PlatformError("image_unusable", `${file.name} has ${found.size} bytes of ${file.size}`);
  if (found.crc32 !== file.crc32) throw new PlatformError("image_unusable", `${file.name} has changed since it was written`);
}

function truncateUnlessShared(path: string): void {
  if (statSync(path).nlink === 1) truncateSync(path, 0);
}

// Images on disk: the record `images/<id>/image.json`, and the memory in `images/<id>/memory/`. The record is written last and flushed, so
// a folder without a record is an incomplete image. When a pause is answered, its image is complete on disk.

import { existsSync, linkSync, mkdirSync, readdirSync, rmdirSync, statSync, truncateSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";
import { syncDirectory } from "@skerry/base/linux";
import type { MemoryImage } from "@skerry/runtime";
import type { NodePaths } from "../paths.ts";
import { type ImageRecord, type MemoryFile, parseImageRecord, type StoredMemory } from "../records/image-record.ts";
import { readRecordFile, writeRecordDurably } from "../records/record-file.privileged.ts";
import { moveToTrash } from "../trash.privileged.ts";
import { checksumFile } from "./checksum-file.ts";

export class ImageStore {
  readonly #paths: NodePaths;
  readonly #records = new Map<string, ImageRecord>();
  readonly #damaged = new Set<string>();
  /** Images whose memory this process has compared with its checksums, and which nothing writes any more. */
  readonly #verified = new Set<string>();

  constructor(paths: NodePaths) {
    this.#paths = paths;
  }

  /** Reads all records, then discards incomplete images. Throws PlatformError("record_unreadable") before it has changed anything. */
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
   * Images with a damaged record. They can only be discarded. It is unknown which areas they refer to, so no area counts as unused
   * while there are any.
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

  /** Flushes the memory files of an image to disk, and returns their checksums with what the runtime needs to restore them. */
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

  /** Makes the image exist, or replaces its record. The record survives a loss of power. */
  commit(record: ImageRecord): void {
    const { record: file } = this.#paths.image(record.imageId);
    writeRecordDurably(file, record);
    syncDirectory(this.#paths.images);
    this.#records.set(record.imageId, record);
  }

  /** Begins an image with the memory of another one. The files are hard links, not copies. */
  shareMemory(from: ImageRecord, imageId: string): void {
    const memory = this.begin(imageId);
    for (const { name } of from.memory?.files ?? []) linkSync(join(this.#paths.image(from.imageId).memory, name), join(memory, name));
  }

  /** Removes the memory of an image and keeps its disk. */
  dropMemory(record: ImageRecord): ImageRecord {
    const { memory: _memory, ...disk } = record;
    this.commit(disk);
    this.#verified.delete(record.imageId);
    moveToTrash(this.#paths, this.#paths.image(record.imageId).memory);
    return disk;
  }

  /** Compares the memory of an image with its checksums and returns it. Throws PlatformError("image_unusable"). */
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
   * Removes an image, complete or incomplete. Memory files of an incomplete image are truncated first, because a runtime whose
   * checkpoint failed keeps them open while the sandbox runs. Files that another image shares are not.
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

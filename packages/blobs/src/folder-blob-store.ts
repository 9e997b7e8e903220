// Blobs as files of a folder: `blobs/<first 2 hex digits>/<all 64>`. A blob is written to `staging`, synced, and renamed to its place.

import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, PlatformError } from "@skerry/base";
import { lockFile, syncDirectory } from "@skerry/base/linux";
import { type BlobDigest, type BlobPage, type BlobRange, type BlobStore, parseBlobDigest } from "./blob-store.ts";

const DEFAULT_LIMIT = 1000;
const PIECE_BYTES = 1024 * 1024;

/** Opens the blob store of a folder, creates it where it does not exist, and removes what processes that have ended left half-written. */
export async function openFolderBlobStore(root: string): Promise<BlobStore> {
  const store = new FolderBlobStore(root);
  await store.open();
  return store;
}

class FolderBlobStore implements BlobStore {
  readonly #blobs: string;
  readonly #staging: string;

  constructor(root: string) {
    this.#blobs = join(root, "blobs");
    this.#staging = join(root, "staging");
  }

  async open(): Promise<void> {
    // Blobs hold the files and the memory of sandboxes.
    for (const dir of [this.#blobs, this.#staging]) await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#staging)) await this.#removeAbandoned(join(this.#staging, name));
  }

  async put(bytes: AsyncIterable<Uint8Array>, { expected }: { readonly expected?: BlobDigest } = {}): Promise<BlobDigest> {
    if (expected !== undefined) parseBlobDigest(expected);
    const { path: staged, file: created } = await this.#create();
    // Locked until it has its place.
    await using stagedFile = created;
    try {
      const digest = await writeAll(stagedFile, bytes);
      if (expected !== undefined && digest !== expected) {
        throw new PlatformError("blob_mismatch", `the bytes of blob ${expected} have the digest ${digest}`);
      }
      const { dir, file } = this.#placeOf(digest);
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await rename(staged, file);
      for (const changed of [dir, this.#blobs]) syncDirectory(changed);
      return digest;
    } catch (error) {
      await rm(staged, { force: true });
      throw error;
    }
  }

  async get(digest: BlobDigest, range?: BlobRange): Promise<AsyncIterable<Uint8Array>> {
    const size = await this.size(digest);
    if (size === undefined) throw new PlatformError("blob_missing", `there is no blob ${digest}`);
    const { offset, length } = range ?? { offset: 0, length: size };
    const isRange = Number.isSafeInteger(offset) && Number.isSafeInteger(length) && offset >= 0 && length >= 0 && offset + length <= size;
    if (!isRange) throw new PlatformError("blob_range_invalid", `blob ${digest} has ${size} bytes, not ${length} from ${offset} on`);
    return readPart(this.#placeOf(digest).file, { offset, length });
  }

  async size(digest: BlobDigest): Promise<number | undefined> {
    try {
      return (await stat(this.#placeOf(digest).file)).size;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  async list({ after, limit = DEFAULT_LIMIT }: BlobPage = {}): Promise<readonly BlobDigest[]> {
    const last = after === undefined ? "" : hexOf(after);
    const found: BlobDigest[] = [];
    for (const shard of (await readdir(this.#blobs)).sort()) {
      if (shard < last.slice(0, 2)) continue;
      for (const name of (await readdir(join(this.#blobs, shard))).sort()) {
        if (found.length === limit) return found;
        if (name > last) found.push(parseBlobDigest(`sha256:${name}`));
      }
    }
    return found;
  }

  async delete(digest: BlobDigest): Promise<void> {
    await rm(this.#placeOf(digest).file, { force: true });
  }

  #placeOf(digest: BlobDigest): { readonly dir: string; readonly file: string } {
    const hex = hexOf(digest);
    const dir = join(this.#blobs, hex.slice(0, 2));
    return { dir, file: join(dir, hex) };
  }

  /** An empty file that stays locked while it is open, so that `open` of another process leaves it. */
  async #create(): Promise<{ readonly path: string; readonly file: FileHandle }> {
    for (;;) {
      const path = join(this.#staging, randomBytes(16).toString("hex"));
      const file = await open(path, "wx", 0o600);
      if (lockFile(file.fd) && existsSync(path)) return { path, file };
      // Another process took it for an abandoned one before it was locked.
      await file.close();
    }
  }

  async #removeAbandoned(path: string): Promise<void> {
    try {
      await using file = await open(path, "r+");
      if (lockFile(file.fd)) await rm(path, { force: true });
    } catch (error) {
      // Renamed to its place since the folder was read.
      if (errnoOf(error) !== "ENOENT") throw error;
    }
  }
}

async function writeAll(file: FileHandle, bytes: AsyncIterable<Uint8Array>): Promise<BlobDigest> {
  const hash = createHash("sha256");
  for await (const piece of bytes) {
    hash.update(piece);
    await file.appendFile(piece);
  }
  await file.sync();
  return parseBlobDigest(`sha256:${hash.digest("hex")}`);
}

/** Throws for text that is not a digest, whatever its type says: it becomes part of a path. */
function hexOf(digest: BlobDigest): string {
  return parseBlobDigest(digest).slice("sha256:".length);
}

async function* readPart(path: string, { offset, length }: BlobRange): AsyncGenerator<Uint8Array> {
  await using file = await open(path, "r").catch((cause: unknown) => {
    throw errnoOf(cause) === "ENOENT" ? new PlatformError("blob_missing", `${path} was deleted`, { cause }) : cause;
  });
  for (let done = 0; done < length; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length - done));
    const { bytesRead } = await file.read(piece, 0, piece.length, offset + done);
    if (bytesRead === 0) throw new PlatformError("blob_missing", `${path} is shorter than it was`);
    done += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

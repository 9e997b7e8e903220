// Writes one uploaded file. The order of the system calls is part of the contract, because watchers count the events. So there is no
// temporary file, no rename, and no chmod afterwards.

import { constants } from "node:fs";
import { chown, type FileHandle, open, stat } from "node:fs/promises";
import { asError, errnoOf, isOutOfSpace } from "@skerry/base";
import type { Credentials } from "../../accounts/accounts.ts";
import { type Metadata, readMetadata, replaceMetadata } from "../../filesystem/metadata.ts";
import { currentHub } from "../../filesystem/watching/current-hub.ts";
import { loadLibc } from "../../native/libc.ts";
import { HttpError } from "../exchange.ts";
import { makeParents } from "./file-request.ts";
import { TransferBuffers } from "./transfer-buffers.ts";

/** A file up to this size is written with one call, in however many packets it arrives. */
const GATHERED_BYTES = 256 * 1024;

export interface UploadTarget {
  readonly path: string;
  readonly owner: Credentials;
  readonly metadata: Metadata;
  /** The request's Content-Length; 0 when unknown. */
  readonly contentLength: number;
}

/** Returns the file's metadata after the upload. */
export async function writeUpload(target: UploadTarget, content: AsyncIterable<Buffer>): Promise<Metadata> {
  await makeParents(target.path, target.owner);
  const isNew = await prepareExisting(target);
  await using file = await openTarget(target, isNew);
  if (isNew) await file.chown(target.owner.uid, target.owner.gid);
  // The kernel merges two equal unread events: here the truncation and the new write. So wait until the first one is read.
  else await currentHub()?.settle();
  await writeContent(target, file, content);
  if (isNew && Object.keys(target.metadata).length === 0) return {};
  await loadLibc();
  return storeMetadata(target);
}

/** Returns true when nothing exists at the path yet. */
async function prepareExisting({ path, owner }: UploadTarget): Promise<boolean> {
  try {
    const stats = await stat(path);
    if (stats.isDirectory()) throw new HttpError(400, `path is a directory: ${path}`);
    const isOwned = stats.uid === owner.uid && stats.gid === owner.gid;
    if (isOwned && stats.isFile() && currentHub()) await touchOwner(path, owner);
    else await chown(path, owner.uid, owner.gid);
    return false;
  } catch (error) {
    if (error instanceof HttpError) throw error;
    if (errnoOf(error) === "ENOENT") return true;
    throw new HttpError(500, `error getting file info: ${asError(error).message}`);
  }
}

// When a chown changes nothing, gVisor notifies watchers only if the file is open. Linux always does.
async function touchOwner(path: string, owner: Credentials): Promise<void> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  await file.chown(owner.uid, owner.gid);
}

/** O_NONBLOCK: opening a FIFO without a reader fails instead of blocking a thread for ever. */
const WRITE = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK;

/**
 * An existing file is opened without O_CREAT: where `fs.protected_regular` is set, as it is on most hosts, Linux refuses O_CREAT for a file of
 * another user in a folder such as /tmp, also to root.
 */
async function openTarget({ path }: UploadTarget, isNew: boolean): Promise<FileHandle> {
  try {
    if (!isNew) {
      // Undefined: it was removed a moment ago.
      const existing = await open(path, WRITE).catch(ignoreMissing);
      if (existing) return existing;
    }
    return await open(path, WRITE | constants.O_CREAT, 0o666);
  } catch (error) {
    if (errnoOf(error) === "ENOSPC") throw new HttpError(507, `not enough inodes available: ${asError(error).message}`);
    throw new HttpError(500, `error opening file: ${asError(error).message}`);
  }
}

function ignoreMissing(error: unknown): undefined {
  if (errnoOf(error) !== "ENOENT") throw error;
}

async function writeContent(target: UploadTarget, file: FileHandle, content: AsyncIterable<Buffer>): Promise<void> {
  const gathered: Buffer[] = [];
  let size = 0;
  let large: LargeContent | undefined;
  try {
    for await (const piece of content) {
      size += piece.length;
      gathered.push(piece);
      if (size <= GATHERED_BYTES) continue;
      large ??= new LargeContent(target, file);
      for (const each of gathered.splice(0)) await large.add(each);
    }
    if (large) await large.finish();
    else if (size > 0) await writeAll(target, file, Buffer.concat(gathered));
  } finally {
    await large?.[Symbol.asyncDispose]();
  }
}

/** Content larger than GATHERED_BYTES: one buffer is filled while the other is written. */
class LargeContent implements AsyncDisposable {
  readonly #target: UploadTarget;
  readonly #file: FileHandle;
  readonly #buffers = new TransferBuffers();
  #filled = 0;
  #written = Promise.resolve();

  constructor(target: UploadTarget, file: FileHandle) {
    this.#target = target;
    this.#file = file;
  }

  async add(piece: Buffer): Promise<void> {
    for (let taken = 0; taken < piece.length; ) {
      const { filling } = this.#buffers;
      const count = piece.copy(filling, this.#filled, taken);
      taken += count;
      this.#filled += count;
      if (this.#filled === filling.length) await this.#flush();
    }
  }

  async finish(): Promise<void> {
    await this.#flush();
    await this.#written;
  }

  /** Waits for the last write. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#written.catch(() => {});
    this.#buffers[Symbol.dispose]();
  }

  async #flush(): Promise<void> {
    await this.#written;
    this.#written = writeAll(this.#target, this.#file, this.#buffers.filling.subarray(0, this.#filled));
    // Awaited before its buffer is reused, or at the end.
    this.#written.catch(() => {});
    this.#buffers.swap();
    this.#filled = 0;
  }
}

async function writeAll(target: UploadTarget, file: FileHandle, bytes: Buffer): Promise<void> {
  try {
    for (let offset = 0; offset < bytes.length; ) offset += (await file.write(bytes, offset)).bytesWritten;
  } catch (error) {
    if (!isOutOfSpace(error)) throw new HttpError(500, `error writing file: ${asError(error).message}`);
    const attempt = target.contentLength > 0 ? `attempted to write ${target.contentLength} bytes: ` : "";
    throw new HttpError(507, `${attempt}not enough disk space available`);
  }
}

function storeMetadata({ path, metadata }: UploadTarget): Metadata {
  try {
    replaceMetadata(path, metadata);
  } catch (error) {
    if (isOutOfSpace(error)) throw new HttpError(507, `not enough space for file metadata: ${asError(error).message}`);
    throw new HttpError(500, `error setting file metadata: ${asError(error).message}`);
  }
  return readMetadata(path);
}

// The identity of a layer: a SHA-256 over everything in its tree that a sandbox can see, in one fixed order.
// Modification times count in whole seconds. Hard links count by their content.

//
// Calls of small trees and files are synchronous, which is several times faster; the walk lets other work of this thread run in between.

import { createHash, type Hash } from "node:crypto";
import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { readXattrs } from "@skerry/base/linux";

/** How much of a file is read at a time. */
const PIECE_BYTES = 1024 * 1024;
/** Larger files are read in the background. */
const SMALL_FILE_BYTES = 256 * 1024;
/** How long other work of this thread waits at most. */
const WORK_MS = 4;
const SLASH = Buffer.from("/");

export interface TreeDigest {
  /** "sha256:" and 64 hex digits. */
  readonly digest: string;
  /** Sum of the sizes of regular files. */
  readonly sizeBytes: number;
  readonly entries: number;
}

/** Preconditions: nothing writes to the tree meanwhile. */
export async function digestTree(root: string): Promise<TreeDigest> {
  const walk: Walk = {
    hash: createHash("sha256"),
    totals: { sizeBytes: 0, entries: 0 },
    piece: Buffer.allocUnsafe(PIECE_BYTES),
    workingSince: performance.now(),
  };
  await digestEntry(walk, Buffer.from(root), Buffer.alloc(0));
  return { digest: `sha256:${walk.hash.digest("hex")}`, ...walk.totals };
}

interface Walk {
  readonly hash: Hash;
  readonly totals: { sizeBytes: number; entries: number };
  readonly piece: Buffer;
  workingSince: number;
}

/** `relative`: the entry's path below the root of the tree; empty for the root itself. */
async function digestEntry(walk: Walk, path: Buffer, relative: Buffer): Promise<void> {
  const stats = lstatSync(path);
  walk.totals.entries += 1;
  const fields: (Field | number)[] = [fieldOf(relative), stats.mode, stats.uid, stats.gid, Math.floor(stats.mtimeMs / 1000)];
  if (stats.isSymbolicLink()) fields.push(fieldOf(readlinkSync(path, { encoding: "buffer" })));
  if (stats.isFile()) fields.push(stats.size);
  if (stats.isCharacterDevice() || stats.isBlockDevice()) fields.push(stats.rdev);
  for (const [name, value] of sortedXattrs(path)) fields.push(name, value.toString("base64"));
  walk.hash.update(`${JSON.stringify(fields)}\n`);
  if (stats.isFile()) await digestContent(walk, path, stats);
  await letOthersWork(walk);
  if (stats.isDirectory()) {
    const names = readdirSync(path, { encoding: "buffer" });
    for (const name of names.sort(Buffer.compare)) {
      await digestEntry(walk, Buffer.concat([path, SLASH, name]), relative.length === 0 ? name : Buffer.concat([relative, SLASH, name]));
    }
  }
}

/** Names are bytes. One that is text is hashed as text, as in earlier versions; any other one cannot be mistaken for text. */
type Field = string | { readonly base64: string };

function fieldOf(bytes: Buffer): Field {
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes) ? text : { base64: bytes.toString("base64") };
}

function sortedXattrs(path: Buffer): [Field, Buffer][] {
  const key = (field: Field) => (typeof field === "string" ? field : `\uffff${field.base64}`);
  return readXattrs(path)
    .map(([name, value]): [Field, Buffer] => [fieldOf(name), value])
    .sort(([a], [b]) => (key(a) < key(b) ? -1 : 1));
}

async function digestContent(walk: Walk, path: Buffer, stats: Stats): Promise<void> {
  walk.totals.sizeBytes += stats.size;
  if (stats.size <= SMALL_FILE_BYTES) {
    walk.hash.update(readSmall(path, walk.piece));
    return;
  }
  await using file = await open(path, "r");
  for (;;) {
    const { bytesRead } = await file.read(walk.piece, 0, PIECE_BYTES, null);
    if (bytesRead === 0) return;
    walk.hash.update(walk.piece.subarray(0, bytesRead));
  }
}

function readSmall(path: Buffer, piece: Buffer): Uint8Array {
  const file = openSync(path, "r");
  try {
    let length = 0;
    for (let read = -1; read !== 0; length += read) read = readSync(file, piece, length, piece.length - length, null);
    return piece.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

async function letOthersWork(walk: Walk): Promise<void> {
  if (performance.now() - walk.workingSince < WORK_MS) return;
  await setImmediate();
  walk.workingSince = performance.now();
}

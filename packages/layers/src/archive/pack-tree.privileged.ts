// Packs a tree into a tar archive: owners, modes, times, extended attributes, hard links, holes, devices and names of any bytes.
//
// Equal trees give equal bytes: entries and attributes are sorted by their bytes, and nothing of this host is in the archive.

import { closeSync, constants, type Dirent, lstatSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { PlatformError } from "@skerry/base";
import { readXattrs, seekDataOrHole } from "@skerry/base/linux";
import { Header } from "tar";
import { Pace } from "../area/descent.privileged.ts";
import { BLOCK_BYTES, encodePax, encodeTime, paddingOf, XATTR_PREFIX } from "./pax.ts";
import { encodeSparseMap, type Segment } from "./sparse-map.ts";

/** How much of a file is read at a time, and how much of small entries is collected before it is handed on. */
const PIECE_BYTES = 1024 * 1024;
/** Larger numbers do not fit into the octal fields of a header. */
const MAX_OCTAL_ID = 0o7777777;
const MAX_OCTAL_SIZE = 0o77777777777;
const KIND = 0o170000;
const TYPES: ReadonlyMap<number, "CharacterDevice" | "BlockDevice" | "FIFO"> = new Map([
  [constants.S_IFCHR, "CharacterDevice"],
  [constants.S_IFBLK, "BlockDevice"],
  [constants.S_IFIFO, "FIFO"],
]);

type Stats = ReturnType<typeof statOf>;
type Pax = Map<string, Buffer>;

/**
 * The bytes of the archive, produced as they are read. Throws PlatformError("tree_not_packable") for a tree with a socket. Preconditions:
 * root; nothing writes to the tree meanwhile.
 */
export async function* packTree(root: string): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  for await (const piece of entriesBelow({ links: new Map(), pace: new Pace(), path: Buffer.from(root), relative: Buffer.from(".") })) {
    waiting.push(piece);
    waitingBytes += piece.length;
    if (waitingBytes < PIECE_BYTES) continue;
    yield Buffer.concat(waiting);
    waiting = [];
    waitingBytes = 0;
  }
  // Two empty blocks are the end of an archive.
  yield Buffer.concat([...waiting, Buffer.alloc(2 * BLOCK_BYTES)]);
}

interface Entry {
  /** The first path of files with several names, by device and inode. */
  readonly links: Map<string, Buffer>;
  readonly pace: Pace;
  readonly path: Buffer;
  /** From the root of the tree, which is ".". */
  readonly relative: Buffer;
}

async function* entriesBelow(entry: Entry): AsyncGenerator<Buffer> {
  await entry.pace.keep();
  const stats = statOf(entry.path);
  const kind = Number(stats.mode) & KIND;
  if (kind === constants.S_IFDIR) {
    yield headerOf(entry, stats, { type: "Directory" });
    for (const { name } of sortedEntries(entry.path)) {
      yield* entriesBelow({ ...entry, path: joined(entry.path, name), relative: joined(entry.relative, name) });
    }
    return;
  }
  const first = stats.nlink > 1n ? entry.links.get(`${stats.dev}:${stats.ino}`) : undefined;
  if (first) yield headerOf(entry, stats, { type: "Link", target: first });
  else {
    if (stats.nlink > 1n) entry.links.set(`${stats.dev}:${stats.ino}`, entry.relative);
    if (kind === constants.S_IFREG) yield* fileOf(entry, stats);
    else yield headerOf(entry, stats, specialOf(entry, stats));
  }
}

function specialOf({ path, relative }: Entry, stats: Stats): Special {
  const kind = Number(stats.mode) & KIND;
  if (kind === constants.S_IFLNK) return { type: "SymbolicLink", target: readlinkSync(path, { encoding: "buffer" }) };
  const type = TYPES.get(kind);
  if (!type) throw new PlatformError("tree_not_packable", `${relative} is a socket, which an archive cannot hold`);
  return { type };
}

async function* fileOf(entry: Entry, stats: Stats): AsyncGenerator<Buffer> {
  const fd = openSync(entry.path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const size = Number(stats.size);
    const segments = segmentsOf(fd, size);
    if (size === 0 || segments[0]?.length === size) {
      yield headerOf(entry, stats, { type: "File", size });
      yield* contentOf(fd, [{ offset: 0, length: size }], entry.pace);
      return;
    }
    const map = encodeSparseMap(segments);
    const data = segments.reduce((sum, { length }) => sum + length, 0);
    yield headerOf(entry, stats, { type: "File", size: map.length + data, realSize: size });
    yield map;
    yield* contentOf(fd, segments, entry.pace);
  } finally {
    closeSync(fd);
  }
}

/** The parts of a file that are not holes. */
function segmentsOf(fd: number, size: number): Segment[] {
  const segments: Segment[] = [];
  for (let offset = seekDataOrHole(fd, 0, "data"); offset !== undefined && offset < size; ) {
    const end = Math.min(seekDataOrHole(fd, offset, "hole") ?? size, size);
    segments.push({ offset, length: end - offset });
    offset = end < size ? seekDataOrHole(fd, end, "data") : undefined;
  }
  return segments;
}

async function* contentOf(fd: number, segments: readonly Segment[], pace: Pace): AsyncGenerator<Buffer> {
  let total = 0;
  for (const { offset, length } of segments) {
    for (let done = 0; done < length; ) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length - done));
      await pace.keep();
      const bytesRead = readSync(fd, piece, 0, piece.length, offset + done);
      if (bytesRead === 0) throw new PlatformError("tree_not_packable", "a file became shorter while it was packed");
      done += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
    total += length;
  }
  yield Buffer.alloc(paddingOf(total));
}

interface Special {
  readonly type: "Directory" | "File" | "Link" | "SymbolicLink" | "CharacterDevice" | "BlockDevice" | "FIFO";
  readonly target?: Buffer;
  /** Of the content in the archive. */
  readonly size?: number;
  /** Of a sparse file. */
  readonly realSize?: number;
}

function headerOf({ path, relative }: Entry, stats: Stats, special: Special): Buffer {
  const { type, target, size = 0, realSize } = special;
  const [uid, gid] = [Number(stats.uid), Number(stats.gid)];
  const pax: Pax = new Map();
  if (realSize !== undefined) {
    pax.set("GNU.sparse.major", Buffer.from("1")).set("GNU.sparse.minor", Buffer.from("0"));
    pax.set("GNU.sparse.name", relative).set("GNU.sparse.realsize", Buffer.from(String(realSize)));
  } else if (!isPlain(relative)) pax.set("path", relative);
  if (target && !isPlain(target)) pax.set("linkpath", target);
  if (![...relative, ...(target ?? [])].every((byte) => byte < 0x80)) pax.set("hdrcharset", Buffer.from("BINARY"));
  if (uid > MAX_OCTAL_ID) pax.set("uid", Buffer.from(String(uid)));
  if (gid > MAX_OCTAL_ID) pax.set("gid", Buffer.from(String(gid)));
  if (size > MAX_OCTAL_SIZE) pax.set("size", Buffer.from(String(size)));
  if (type !== "Link") addMetadata(pax, path, stats);
  const header = encodeHeader({
    path: isPlain(relative) ? relative.toString("latin1") : "pax",
    ...(target && isPlain(target) ? { linkpath: target.toString("latin1") } : {}),
    type,
    mode: Number(stats.mode) & 0o7777,
    uid: Math.min(uid, MAX_OCTAL_ID),
    gid: Math.min(gid, MAX_OCTAL_ID),
    size: Math.min(size, MAX_OCTAL_SIZE),
    ...devicesOf(type, Number(stats.rdev)),
  });
  if (pax.size === 0) return header;
  const records = encodePax(pax);
  const extended = encodeHeader({ path: "pax", type: "ExtendedHeader", mode: 0o644, uid: 0, gid: 0, size: records.length });
  return Buffer.concat([extended, records, Buffer.alloc(paddingOf(records.length)), header]);
}

function addMetadata(pax: Pax, path: Buffer, { mtimeNs }: Stats): void {
  pax.set("mtime", encodeTime(mtimeNs));
  for (const [name, value] of readXattrs(path).sort(([a], [b]) => Buffer.compare(a, b))) {
    pax.set(`${XATTR_PREFIX}${name.toString("latin1")}`, value);
  }
}

type HeaderFields = ConstructorParameters<typeof Header>[0] & object;

function encodeHeader(fields: HeaderFields): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  new Header({ mtime: new Date(0), ...fields }).encode(block);
  return block;
}

function devicesOf(type: Special["type"], rdev: number): { devmaj?: number; devmin?: number } {
  if (type !== "CharacterDevice" && type !== "BlockDevice") return {};
  return { devmaj: (rdev >>> 8) & 0xfff, devmin: (rdev & 0xff) | ((rdev >>> 12) & 0xfff00) };
}

/** Fits into the name field of a header, and means the same to every program. */
function isPlain(bytes: Buffer): boolean {
  return bytes.length < 100 && bytes.every((byte) => byte > 0x20 && byte < 0x7f);
}

const statOf = (path: Buffer) => lstatSync(path, { bigint: true });

function sortedEntries(path: Buffer): Dirent<Buffer>[] {
  const entries = readdirSync(path, { withFileTypes: true, encoding: "buffer" });
  return entries.sort((a, b) => Buffer.compare(a.name, b.name));
}

function joined(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat([folder, Buffer.from("/"), name]);
}

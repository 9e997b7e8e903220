// Unpacks what `packTree` packs, and nothing else. The archive may be hostile, so the order of its entries is checked, too: each one lies
// in a directory that this archive has created and not left yet, behind its siblings in the order of their bytes. So no name appears
// twice, no entry replaces another, and no path leads through a symbolic link or out of the target.
//
// Calls of the file system are synchronous, which takes a fifth of the time for trees of small files. The unpacker pauses between them.

import {
  chmodSync,
  closeSync,
  constants,
  ftruncateSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { PlatformError } from "@skerry/base";
import { makeNode, setTimes, setXattr } from "@skerry/base/linux";
import { Header } from "tar";
import { Pace } from "../area/descent.privileged.ts";
import { ByteReader } from "./byte-reader.ts";
import { BLOCK_BYTES, decodePax, decodeTime, MAX_PAX_BYTES, type PaxRecords, paddingOf, XATTR_PREFIX } from "./pax.ts";
import { decodeSparseMap, type Segment } from "./sparse-map.ts";

const SLASH = Buffer.from("/");
const ROOT = Buffer.from(".");
const MAX_NAME_BYTES = 255;
const MAX_MODE = 0o7777;
const KINDS: Readonly<Record<string, number>> = {
  CharacterDevice: constants.S_IFCHR,
  BlockDevice: constants.S_IFBLK,
  FIFO: constants.S_IFIFO,
};

/** Throws PlatformError("archive_invalid"); the caller then removes the target. Preconditions: root; `target` is an empty directory. */
export async function unpackTree(bytes: AsyncIterable<Uint8Array>, target: string): Promise<void> {
  const reader = new ByteReader(bytes);
  try {
    await new Unpacker(reader, Buffer.from(target)).run();
  } finally {
    await reader.close();
  }
}

interface Entry {
  readonly type: string;
  readonly path: Buffer;
  readonly target: Buffer;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeNs: bigint;
  /** Of the content in the archive. */
  readonly size: number;
  /** Of a sparse file. */
  readonly realSize: number | undefined;
  readonly device: number;
  readonly xattrs: readonly (readonly [Buffer, Buffer])[];
}

/** A directory that is being filled. Its attributes are set when it is left: filling it changes its times. */
interface OpenDirectory {
  readonly entry: Entry;
  /** The name of the last entry in it. */
  last: Buffer;
}

class Unpacker {
  readonly #reader: ByteReader;
  readonly #root: Buffer;
  readonly #open: OpenDirectory[] = [];
  /** Paths that a hard link may name. */
  readonly #files = new Set<string>();
  readonly #pace = new Pace();

  constructor(reader: ByteReader, root: Buffer) {
    this.#reader = reader;
    this.#root = root;
  }

  async run(): Promise<void> {
    for (let entry = await this.#next(); entry; entry = await this.#next()) {
      await this.#place(entry);
      await this.#pace.keep();
    }
    if (this.#open.length === 0) throw invalid("it is empty");
    while (this.#open.length > 0) this.#leave();
    if ((await this.#reader.drain()) > 0) throw invalid("something follows its end");
  }

  /** The next entry, or undefined at the end of the archive. */
  async #next(): Promise<Entry | undefined> {
    let block = await this.#reader.read(BLOCK_BYTES);
    let pax: PaxRecords = new Map();
    if (isEmpty(block)) {
      if (!isEmpty(await this.#reader.read(BLOCK_BYTES))) throw invalid("its end is damaged");
      return undefined;
    }
    let header = parseHeader(block);
    if (header.type === "ExtendedHeader") {
      const size = header.size ?? 0;
      if (size > MAX_PAX_BYTES) throw invalid("an extended header is too large");
      pax = decodePax(await this.#reader.read(size));
      await this.#reader.read(paddingOf(size));
      block = await this.#reader.read(BLOCK_BYTES);
      header = parseHeader(block);
    }
    return entryOf(header, pax);
  }

  async #place(entry: Entry): Promise<void> {
    const path = this.#pathOf(this.#enter(entry.path));
    if (entry.type === "Directory") {
      if (!entry.path.equals(ROOT)) mkdirSync(path, { mode: 0o700 });
      this.#open.push({ entry, last: Buffer.alloc(0) });
      return;
    }
    if (entry.path.equals(ROOT)) throw invalid("its first entry is no directory");
    if (entry.type === "Link") {
      if (!this.#files.has(entry.target.toString("latin1"))) throw invalid("a hard link names no file before it");
      linkSync(this.#pathOf(entry.target), path);
      return;
    }
    if (entry.type === "File") await this.#writeFile(path, entry);
    else if (entry.type === "SymbolicLink") symlinkSync(entry.target, path);
    else makeNode(path, { mode: kindOf(entry) | 0o600, device: entry.device });
    this.#files.add(entry.path.toString("latin1"));
    setAttributes(path, entry);
  }

  /** Leaves the directories that an entry does not lie in, and checks that it may come now. Returns its path. */
  #enter(path: Buffer): Buffer {
    if (path.equals(ROOT)) {
      if (this.#open.length > 0) throw invalid("it has two roots");
      return path;
    }
    const slash = path.lastIndexOf(0x2f);
    const [parent, name] = [path.subarray(0, Math.max(slash, 0)), path.subarray(slash + 1)];
    while (this.#open.length > 0 && !this.#open.at(-1)?.entry.path.equals(parent)) this.#leave();
    const directory = this.#open.at(-1);
    const isName = name.length > 0 && name.length <= MAX_NAME_BYTES && !name.includes(0) && ![".", ".."].includes(name.toString("latin1"));
    if (!directory || !isName || Buffer.compare(directory.last, name) >= 0) throw invalid("its entries are not in order");
    directory.last = name;
    return path;
  }

  #leave(): void {
    const left = this.#open.pop();
    if (left) setAttributes(this.#pathOf(left.entry.path), left.entry);
  }

  #pathOf(path: Buffer): Buffer {
    return path.equals(ROOT) ? this.#root : Buffer.concat([this.#root, SLASH, path.subarray(ROOT.length + SLASH.length)]);
  }

  async #writeFile(path: Buffer, entry: Entry): Promise<void> {
    const fd = openSync(path, "wx", 0o600);
    try {
      await this.#writeContent(fd, entry);
    } finally {
      closeSync(fd);
    }
  }

  async #writeContent(fd: number, { size, realSize }: Entry): Promise<void> {
    const { segments, mapBytes } = await this.#segments(size, realSize);
    if (segments.reduce((sum, { length }) => sum + length, 0) + mapBytes !== size) throw invalid("the size of a file is wrong");
    for (const { offset, length } of segments) {
      for (let done = 0; done < length; ) {
        const piece = await this.#reader.readSome(length - done);
        writeAll(fd, piece, offset + done);
        done += piece.length;
        await this.#pace.keep();
      }
    }
    ftruncateSync(fd, realSize ?? size);
    await this.#reader.read(paddingOf(size));
  }

  async #segments(size: number, realSize: number | undefined): Promise<{ segments: readonly Segment[]; mapBytes: number }> {
    if (realSize === undefined) return { segments: [{ offset: 0, length: size }], mapBytes: 0 };
    const { segments, bytes } = await decodeSparseMap(() => this.#reader.read(BLOCK_BYTES), realSize);
    return { segments, mapBytes: bytes };
  }
}

/** The kernel may write less than it was given. */
function writeAll(fd: number, piece: Buffer, offset: number): void {
  for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done, piece.length - done, offset + done);
}

function parseHeader(block: Buffer): Header {
  try {
    const header = new Header(block, 0);
    if (header.cksumValid) return header;
  } catch {
    // It throws for some damaged numbers.
  }
  throw invalid("a header is damaged");
}

function entryOf(header: Header, pax: PaxRecords): Entry {
  const number = (name: string, other: number | undefined) => {
    const text = pax.get(name)?.toString("latin1") ?? String(other ?? 0);
    if (!/^\d{1,15}$/.test(text)) throw invalid(`a number in it is damaged (${name})`);
    return Number(text);
  };
  const { type } = header;
  const isKnown = ["Directory", "File", "Link", "SymbolicLink"].includes(type) || KINDS[type] !== undefined;
  if (!isKnown) throw invalid("it has an entry of an unknown kind");
  const size = number("size", header.size);
  if (type !== "File" && size > 0) throw invalid("an entry that is no file has content");
  const time = pax.get("mtime");
  const path = pax.get("GNU.sparse.name") ?? pax.get("path") ?? Buffer.from(header.path ?? "", "latin1");
  const target = pax.get("linkpath") ?? Buffer.from(header.linkpath ?? "", "latin1");
  if (target.includes(0)) throw invalid("a link's target is damaged");
  return {
    type,
    // Libraries that read headers add a slash to directories.
    path: path.length > 1 && path.at(-1) === 0x2f ? path.subarray(0, -1) : path,
    target,
    mode: (header.mode ?? 0) & MAX_MODE,
    uid: number("uid", header.uid),
    gid: number("gid", header.gid),
    mtimeNs: time ? decodeTime(time) : 0n,
    size,
    realSize: pax.has("GNU.sparse.realsize") ? number("GNU.sparse.realsize", 0) : undefined,
    device: deviceOf(header),
    xattrs: [...pax].flatMap(([key, value]) =>
      key.startsWith(XATTR_PREFIX) ? [[Buffer.from(key.slice(XATTR_PREFIX.length), "latin1"), value] as const] : [],
    ),
  };
}

/** As in the status of a file. */
function deviceOf({ devmaj = 0, devmin = 0 }: Header): number {
  return ((devmaj & 0xfff) << 8) | (devmin & 0xff) | ((devmin & ~0xff) << 12);
}

function kindOf({ type }: Entry): number {
  return KINDS[type] ?? 0;
}

/** The owner first: changing it takes away set-user-id bits and capabilities. */
function setAttributes(path: Buffer, entry: Entry): void {
  lchownSync(path, entry.uid, entry.gid);
  if (entry.type !== "SymbolicLink") chmodSync(path, entry.mode);
  for (const [name, value] of entry.xattrs) setXattr(path, name, value);
  const atimeNs = lstatSync(path, { bigint: true }).atimeNs;
  setTimes(path, { atimeNs, mtimeNs: entry.mtimeNs });
}

function isEmpty(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

function invalid(why: string): PlatformError {
  return new PlatformError("archive_invalid", `the archive cannot be unpacked: ${why}`);
}

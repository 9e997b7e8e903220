// Applies one layer of an image to a tree, above the layers before it: https://github.com/opencontainers/image-spec/blob/main/layer.md
//
// Preconditions: the tree is the root directory of this process. So the kernel follows links of the layers inside the tree only, and no path
// of theirs leads out of it.
//
// Calls of the file system are synchronous, which takes a fifth of the time for trees of small files. This process does nothing else.

import {
  chmodSync,
  closeSync,
  constants,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { errnoOf, PlatformError } from "@skerry/base/error";
import { makeNode, setTimes, setXattr } from "@skerry/base/linux";
import type { ByteReader } from "../archive/byte-reader.ts";
import { BLOCK_BYTES, MAX_PAX_BYTES, paddingOf } from "../archive/pax.ts";
import { parsePax, parseTarHeader, type TarExtension, type TarHeader } from "./tar-header.ts";

const SLASH = 0x2f;
const WHITEOUT = Buffer.from(".wh.");
const WHITEOUT_OF_WHITEOUTS = Buffer.from(".wh..wh.");
const OPAQUE = Buffer.from(".wh..wh..opq");
const MAX_LINKS = 40;
/** What of a layer's attributes counts as content. The rest belongs to the host, or would make overlayfs show something else. */
const KEPT_XATTR = /^(user\.(?!overlay\.)|security\.capability$|system\.posix_acl_)/;

/** State of the whole image. */
export interface AppliedTree {
  /** Times of directories, which change while they are filled: by path. */
  readonly directoryTimes: Map<string, bigint>;
  entries: number;
}

/** A path in the tree as latin1 text, which keeps every byte: "" is the root, "/a/b" an entry. */
type Path = string;

export class LayerApplier {
  readonly #reader: ByteReader;
  readonly #tree: AppliedTree;
  readonly #maxEntries: number;
  /** What this layer has placed, with the directories above. Whiteouts leave it alone. */
  readonly #placed = new Set<Path>();

  constructor(reader: ByteReader, options: { readonly tree: AppliedTree; readonly maxEntries: number }) {
    this.#reader = reader;
    this.#tree = options.tree;
    this.#maxEntries = options.maxEntries;
  }

  /** Throws PlatformError("archive_invalid"), or an error of a call of the file system. */
  async run(): Promise<void> {
    for (let header = await this.#next(); header; header = await this.#next()) {
      this.#tree.entries += 1;
      if (this.#tree.entries > this.#maxEntries) throw invalid(`the image has more than ${this.#maxEntries} files`);
      await this.#apply(header);
    }
    await this.#reader.drain();
  }

  async #next(): Promise<TarHeader | undefined> {
    let extension: TarExtension = {};
    for (;;) {
      const header = parseTarHeader(await this.#reader.read(BLOCK_BYTES), extension);
      if (header === undefined || !"xgLK".includes(header.type)) return header;
      if (header.size > MAX_PAX_BYTES) throw invalid("an extended header is too large");
      const content = await this.#reader.read(header.size);
      await this.#reader.read(paddingOf(header.size));
      if (header.type === "x") extension = { ...extension, pax: parsePax(content) };
      if (header.type === "L") extension = { ...extension, path: withoutEnd(content) };
      if (header.type === "K") extension = { ...extension, target: withoutEnd(content) };
    }
  }

  async #apply(header: TarHeader): Promise<void> {
    const path = pathOf(header.path);
    const slash = path.lastIndexOf("/");
    const [parent, name] = [path.slice(0, Math.max(slash, 0)), Buffer.from(path.slice(slash + 1), "latin1")];
    if (name.subarray(0, WHITEOUT.length).equals(WHITEOUT)) {
      this.#whiteOut(parent, name);
      await this.#skip(header.size);
      return;
    }
    if (path === "") {
      if (header.type !== "5") throw invalid("its root is no directory");
      this.#setAttributes(path, header);
      await this.#skip(header.size);
      return;
    }
    this.#ensureDirectory(parent);
    for (let at: Path = path; at !== "" && !this.#placed.has(at); at = at.slice(0, at.lastIndexOf("/"))) this.#placed.add(at);
    if (header.type === "0") return await this.#placeFile(path, header);
    this.#place(path, header);
    await this.#skip(header.size);
  }

  #place(path: Path, header: TarHeader): void {
    if (header.type === "5") {
      if (!statusOf(path)?.isDirectory()) {
        this.#remove(path);
        mkdirSync(bytes(path), { mode: 0o700 });
      }
      this.#setAttributes(path, header);
      return;
    }
    if (header.type === "1") {
      const target = pathOf(header.target);
      if (target === path) return;
      this.#remove(path);
      linkSync(bytes(target), bytes(path));
      return;
    }
    this.#remove(path);
    if (header.type === "2") {
      if (header.target.length === 0 || header.target.includes(0)) throw invalid("the target of a link is damaged");
      symlinkSync(header.target, bytes(path));
    } else if (header.type === "6") makeNode(bytes(path), { mode: constants.S_IFIFO | 0o600, device: 0 });
    else if (header.type === "3" || header.type === "4") {
      // A sandbox gets devices of its own.
      this.#placed.delete(path);
      return;
    } else throw invalid("it has an entry of an unknown kind");
    this.#setAttributes(path, header);
  }

  async #placeFile(path: Path, header: TarHeader): Promise<void> {
    this.#remove(path);
    const fd = openSync(bytes(path), "wx", 0o600);
    try {
      for (let rest = header.size; rest > 0; ) {
        const piece = await this.#reader.readSome(rest);
        for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done);
        rest -= piece.length;
      }
    } finally {
      closeSync(fd);
    }
    await this.#reader.read(paddingOf(header.size));
    this.#setAttributes(path, header);
  }

  async #skip(size: number): Promise<void> {
    for (let rest = size + paddingOf(size); rest > 0; ) rest -= (await this.#reader.readSome(rest)).length;
  }

  /** A whiteout hides what the layers below have. */
  #whiteOut(parent: Path, name: Buffer): void {
    if (name.equals(OPAQUE)) {
      if (statusOf(parent)?.isDirectory()) this.#clear(parent);
      return;
    }
    // Of other storage drivers, which say nothing about files.
    if (name.subarray(0, WHITEOUT_OF_WHITEOUTS.length).equals(WHITEOUT_OF_WHITEOUTS)) return;
    const hidden = name.subarray(WHITEOUT.length).toString("latin1");
    if (["", ".", ".."].includes(hidden)) throw invalid("a whiteout names no file");
    const path = `${parent}/${hidden}`;
    if (!this.#placed.has(path)) this.#remove(path);
    else if (statusOf(path)?.isDirectory()) this.#clear(path);
  }

  /** Removes what is in a directory, without what this layer has placed. */
  #clear(directory: Path): void {
    for (const name of readdirSync(bytes(directory), { encoding: "buffer" })) {
      const path = `${directory}/${name.toString("latin1")}`;
      if (!this.#placed.has(path)) this.#remove(path);
      else if (statusOf(path)?.isDirectory()) this.#clear(path);
    }
  }

  #remove(path: Path): void {
    const status = statusOf(path);
    if (status === undefined) return;
    if (status.isDirectory()) removeTree(path);
    else unlinkSync(bytes(path));
  }

  /** Makes a directory and those above it, where no layer had an entry for them; also behind links. */
  #ensureDirectory(path: Path, links = 0): void {
    if (path === "" || statSync(bytes(path), { throwIfNoEntry: false })?.isDirectory()) return;
    const status = statusOf(path);
    const parent = path.slice(0, path.lastIndexOf("/"));
    if (status?.isSymbolicLink() && links < MAX_LINKS) {
      const target = readlinkSync(bytes(path), { encoding: "latin1" });
      this.#ensureDirectory(resolved(target.startsWith("/") ? target : `${parent}/${target}`), links + 1);
      return;
    }
    if (status) throw invalid("an entry lies below something that is no directory");
    this.#ensureDirectory(parent, links);
    mkdirSync(bytes(path), { mode: 0o755 });
    chmodSync(bytes(path), 0o755);
    this.#tree.directoryTimes.set(path, 0n);
  }

  /** The owner first: changing it takes away set-user-id bits and capabilities. */
  #setAttributes(path: Path, header: TarHeader): void {
    const at = bytes(path);
    lchownSync(at, header.uid, header.gid);
    if (header.type !== "2") chmodSync(at, header.mode);
    for (const [name, value] of header.xattrs) if (KEPT_XATTR.test(name.toString("latin1"))) setAttribute(at, name, value);
    if (header.type === "5") this.#tree.directoryTimes.set(path, header.mtimeNs);
    else setTimes(at, { atimeNs: header.mtimeNs, mtimeNs: header.mtimeNs });
  }
}

/** After the last layer. */
export function setDirectoryTimes({ directoryTimes }: AppliedTree): void {
  for (const [path, mtimeNs] of directoryTimes) {
    if (statusOf(path)?.isDirectory()) setTimes(bytes(path), { atimeNs: mtimeNs, mtimeNs });
  }
}

function setAttribute(path: Buffer, name: Buffer, value: Buffer): void {
  try {
    setXattr(path, name, value);
  } catch (error) {
    // The file system has no attributes of this kind.
    if (errnoOf(error) !== "EOPNOTSUPP" && !/EOPNOTSUPP|ENOTSUP/.test(String(error))) throw error;
  }
}

function removeTree(path: Path): void {
  for (const entry of readdirSync(bytes(path), { encoding: "buffer", withFileTypes: true })) {
    const inside = `${path}/${entry.name.toString("latin1")}`;
    if (entry.isDirectory()) removeTree(inside);
    else unlinkSync(bytes(inside));
  }
  rmdirSync(bytes(path));
}

function pathOf(name: Buffer): Path {
  const parts = name
    .toString("latin1")
    .split("/")
    .filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw invalid("a path leads out of it");
  if (name.includes(0)) throw invalid("a path is damaged");
  return parts.map((part) => `/${part}`).join("");
}

function resolved(path: Path): Path {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.map((part) => `/${part}`).join("");
}

const bytes = (path: Path): Buffer => (path === "" ? Buffer.from([SLASH]) : Buffer.from(path, "latin1"));

const statusOf = (path: Path): Stats | undefined => lstatSync(bytes(path), { throwIfNoEntry: false });

const withoutEnd = (text: Buffer): Buffer => (text.indexOf(0) < 0 ? text : text.subarray(0, text.indexOf(0)));

function invalid(why: string): PlatformError {
  return new PlatformError("archive_invalid", `a layer cannot be unpacked: ${why}`);
}

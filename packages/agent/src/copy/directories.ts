// The directories that entries are placed in.
//
// A symbolic link that was there before and leads to a directory is followed: on many systems /bin, /lib and /sbin are such links. A link
// that came with the archive is not: an archive could otherwise place files anywhere, with the link first and files "below" it after it.

import { chmodSync, chownSync, lstatSync, mkdirSync, statSync, unlinkSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import { type BytePath, native, shown } from "./byte-path.ts";
import { ArchiveError, PlacementError } from "./errors.ts";
import type { Ownership } from "./ownership.ts";

/** Mode of directories that the archive does not describe. */
const DEFAULT_MODE = 0o755;

/** Limit on what is remembered of one archive, about 100 bytes each. */
const MAX_REMEMBERED = 1_000_000;

export class Directories {
  readonly #ownership: Ownership;
  /** Symbolic links of this archive, by device and inode: a path may lead to one in several ways. */
  readonly #links = new Set<string>();
  /** Directories that were made for an entry below them, and whose own entry did not come yet. */
  readonly #undescribed = new Set<BytePath>();
  /** The last directory that was used, and the ones above it up to the root of the copy. */
  #known: BytePath[] = [];

  constructor(ownership: Ownership) {
    this.#ownership = ownership;
  }

  /** Makes the directory itself and everything missing above it, where all links are followed. */
  makeRoot(path: BytePath): void {
    const kind = statSync(native(path), { throwIfNoEntry: false });
    if (kind?.isDirectory()) return;
    if (kind) throw new PlacementError(`${shown(path)} exists and is not a directory`);
    const slash = path.lastIndexOf("/");
    if (slash > 0) this.makeRoot(path.slice(0, slash));
    this.#make(path);
  }

  /** Makes the directories `parts` below `root`, and returns the path of the last one. */
  makeBelow(root: BytePath, parts: readonly string[]): BytePath {
    let path = root;
    for (const [depth, part] of parts.entries()) {
      path = `${path === "/" ? "" : path}/${part}`;
      if (this.#known[depth] === path) continue;
      this.#known.length = depth;
      if (this.#makeOne(path)) this.#remember(this.#undescribed, path);
      this.#known.push(path);
    }
    return path;
  }

  /** Places an entry that is a directory. A directory that was there keeps its owner and mode. */
  describe(path: BytePath, mode: number): void {
    const isNew = this.#makeOne(path) || this.#undescribed.delete(path);
    if (isNew) chmodSync(native(path), this.#ownership.mode ?? mode);
  }

  rememberLink(path: BytePath): void {
    this.#remember(this.#links, identityOf(path));
    this.#known = [];
  }

  /** Removes a file or a link that is about to be replaced. */
  remove(path: BytePath): void {
    const { nlink } = lstatSync(native(path));
    // The inode may be used again, unless it has another name.
    if (nlink === 1) this.#links.delete(identityOf(path));
    this.#known = [];
    unlinkSync(native(path));
  }

  /** Returns false when the directory was there. Any other file in its place is replaced. */
  #makeOne(path: BytePath): boolean {
    const there = lstatSync(native(path), { throwIfNoEntry: false });
    if (there?.isDirectory()) return false;
    if (there?.isSymbolicLink()) {
      if (this.#links.has(identityOf(path))) throw new ArchiveError(`the archive has an entry below its own link: ${shown(path)}`);
      if (statSync(native(path), { throwIfNoEntry: false })?.isDirectory()) return false;
    }
    if (there) this.remove(path);
    this.#make(path);
    return true;
  }

  #make(path: BytePath): void {
    try {
      mkdirSync(native(path), DEFAULT_MODE);
    } catch (error) {
      // Another process of the sandbox made it a moment ago.
      if (errnoOf(error) !== "EEXIST" || !statSync(native(path)).isDirectory()) throw error;
    }
    const { uid, gid } = this.#ownership;
    chownSync(native(path), uid, gid);
  }

  #remember<T>(set: Set<T>, value: T): void {
    if (this.#links.size + this.#undescribed.size >= MAX_REMEMBERED) throw new ArchiveError("the archive has too many links");
    set.add(value);
  }
}

/** Inodes may exceed the numbers that are exact. */
function identityOf(path: BytePath): string {
  const { dev, ino } = lstatSync(native(path), { bigint: true });
  return `${dev}:${ino}`;
}

// Places the content of an archive in the file system of this sandbox: the COPY step of a build. See spec of the builder, "COPY".
//
// Everything is written in place, as the archive is read: a second copy would double the time and the disk that a large copy takes. The
// agent is root here, and archive and image belong to the same template. What has to hold against a hostile archive: memory stays bounded,
// nothing blocks the agent, and nothing is placed outside the destination.

import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  openSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { posix } from "node:path";
import { errnoOf } from "@skerry/base";
import { type BytePath, bytePath, native, shown } from "./byte-path.ts";
import { Directories } from "./directories.ts";
import { ArchiveError, PlacementError } from "./errors.ts";
import { type Ownership, resolveOwnership } from "./ownership.ts";
import { below, entryParts, sourceBase } from "./source-base.ts";
import { ByteSource, plainBytes } from "./tar/byte-source.ts";
import { type Entry, readEntries } from "./tar/read-entries.ts";
import { writeContent } from "./write-content.ts";

export interface Copy {
  readonly archive: AsyncIterable<Uint8Array>;
  /** The source of the COPY instruction. A glob means its base directory. */
  readonly source: string;
  /** A slash at its end makes it a directory. */
  readonly destination: string;
  /** Directory of a relative destination. */
  readonly workdir: string;
  /** Owner of the context. */
  readonly user: string;
  readonly owner: string;
  readonly mode: string;
}

export interface Copied {
  /** Files, directories and links of the archive that were placed. */
  readonly entries: number;
  readonly warnings: readonly string[];
}

/** Throws ArchiveError, PlacementError, or the error of a system call. What was placed before a failure stays. */
export async function placeArchive(copy: Copy): Promise<Copied> {
  const source = new ByteSource(plainBytes(copy.archive));
  try {
    const placement = new Placement(copy, source);
    await readEntries(source, (entry) => placement.place(entry));
    return placement.finish();
  } finally {
    await source.close();
  }
}

/** The last second that fits the inodes of ext4. */
const MAX_SECONDS = 0x37fffffff;

/** Bits of a mode that the umask of the agent (022) takes away from a new file, or that a change of owner does. */
const NEEDS_CHMOD = 0o7022;

class Placement {
  readonly #base: readonly string[];
  readonly #sourceName: string;
  readonly #destination: BytePath;
  readonly #isFolder: boolean;
  readonly #ownership: Ownership;
  readonly #directories: Directories;
  readonly #source: ByteSource;
  /** What the base turned out to be. */
  #kind: "unknown" | "file" | "directory" = "unknown";
  /** Where the base goes if it is no directory. Found once: afterwards a link of the archive may be in its place. */
  #filePath: BytePath | undefined;
  #entries = 0;

  constructor({ source: sourceName, destination, workdir, ...rights }: Copy, source: ByteSource) {
    this.#sourceName = sourceName;
    this.#base = sourceBase(bytePath(sourceName));
    this.#isFolder = /(^|\/)\.{0,2}$/.test(destination);
    this.#destination = bytePath(posix.resolve("/", workdir, destination));
    this.#ownership = resolveOwnership(rights);
    this.#directories = new Directories(this.#ownership);
    this.#source = source;
    // The whole archive is a directory, even when it is empty.
    if (this.#base.length === 0) this.#becomeDirectory();
  }

  async place(entry: Entry): Promise<void> {
    const parts = below(this.#base, entryParts(entry.name));
    if (!parts) return;
    if (parts.length > 0 || entry.type === "directory") this.#placeBelow(entry, parts);
    const path = parts.length === 0 ? this.#baseFile(entry) : this.#pathOf(parts);
    if (entry.type !== "directory") await this.#placeFile(entry, path);
    else if (parts.length > 0) this.#directories.describe(path, entry.mode);
    this.#entries += 1;
  }

  finish(): Copied {
    if (this.#kind === "unknown") throw new PlacementError(`the source '${this.#sourceName}' does not exist`);
    return { entries: this.#entries, warnings: this.#ownership.warnings };
  }

  #placeBelow(entry: Entry, parts: readonly string[]): void {
    if (this.#kind === "file") throw new ArchiveError(`the archive has an entry below a file: ${shown(entry.name)}`);
    if (this.#kind === "unknown") this.#becomeDirectory();
    this.#directories.makeBelow(this.#destination, parts.slice(0, -1));
  }

  #becomeDirectory(): void {
    this.#kind = "directory";
    this.#directories.makeRoot(this.#destination);
  }

  #pathOf(parts: readonly string[]): BytePath {
    return `${this.#destination === "/" ? "" : this.#destination}/${parts.join("/")}`;
  }

  /** Where a base goes that is no directory itself. */
  #baseFile(entry: Entry): BytePath {
    if (entry.type === "directory") return this.#destination;
    if (this.#kind === "directory") throw new ArchiveError(`the archive has a file in the place of a directory: ${shown(entry.name)}`);
    this.#kind = "file";
    this.#filePath ??= this.#findFilePath();
    return this.#filePath;
  }

  #findFilePath(): BytePath {
    const isInside = this.#isFolder || statSync(native(this.#destination), { throwIfNoEntry: false })?.isDirectory() === true;
    const folder = isInside ? this.#destination : posix.dirname(this.#destination);
    this.#directories.makeRoot(folder);
    return isInside ? this.#pathOf(this.#base.slice(-1)) : this.#destination;
  }

  async #placeFile(entry: Entry, path: BytePath): Promise<void> {
    if (entry.type === "file") await this.#writeFile(entry, path);
    else if (entry.type === "symlink") this.#makeLink(entry, path);
    else if (entry.type === "hardlink") this.#makeHardLink(entry, path);
    else
      throw new ArchiveError(
        `the archive has a ${entry.type === "fifo" ? "FIFO" : "device node"}, which cannot be copied: ${shown(entry.name)}`,
      );
  }

  async #writeFile(entry: Entry, path: BytePath): Promise<void> {
    const mode = this.#ownership.mode ?? entry.mode;
    const fd = this.#replacing(path, () =>
      openSync(native(path), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, mode & 0o777),
    );
    try {
      await writeContent(fd, entry.content, this.#source);
      const { uid, gid } = this.#ownership;
      if (uid !== 0 || gid !== 0) fchownSync(fd, uid, gid);
      if ((mode & NEEDS_CHMOD) !== 0) fchmodSync(fd, mode);
      const seconds = Math.min(Math.max(entry.mtime, 0), MAX_SECONDS);
      futimesSync(fd, seconds, seconds);
    } finally {
      closeSync(fd);
    }
  }

  #makeLink(entry: Entry, path: BytePath): void {
    this.#replacing(path, () => symlinkSync(native(entry.linkName), native(path)));
    lchownSync(native(path), this.#ownership.uid, this.#ownership.gid);
    this.#directories.rememberLink(path);
  }

  /** A second name for a file that was placed before. */
  #makeHardLink(entry: Entry, path: BytePath): void {
    const parts = below(this.#base, entryParts(entry.linkName)) ?? [];
    // Also checks that no directory on the way is a link of the archive.
    const folder = parts.length === 0 ? undefined : this.#directories.makeBelow(this.#destination, parts.slice(0, -1));
    const first = folder === undefined ? undefined : this.#pathOf(parts);
    const there = first === undefined ? undefined : lstatSync(native(first), { throwIfNoEntry: false });
    if (first === undefined || !there || there.isDirectory()) {
      throw new ArchiveError(`the archive has a hard link to a file that is not in it: ${shown(entry.name)}`);
    }
    if (first !== path) this.#replacing(path, () => linkSync(native(first), native(path)));
  }

  /** Makes something new at the path. A file or link that is there is removed first, so that nothing is written through it. */
  #replacing<T>(path: BytePath, make: () => T): T {
    try {
      return make();
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
    const there = lstatSync(native(path));
    if (there.isDirectory()) throw new PlacementError(`${shown(path)} is a directory, and would be replaced by a file`);
    this.#directories.remove(path);
    return make();
  }
}

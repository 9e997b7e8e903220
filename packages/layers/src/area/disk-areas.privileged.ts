// Disk areas: the writable part of a sandbox's root file system, each with a size that it cannot outgrow.
//
// An area keeps its place, `<dir>/<id>`, until nobody refers to it. Its owner writes to it through an overlay whose `upper` and `work`
// are in it; later its `upper` may become a layer of any number of sandboxes, while a new area takes what is written next. The areas
// know nothing of their users: who refers to which is written down by the caller, before `create` is called. What a crash leaves
// that nobody refers to is found by `list` and destroyed.
//
//   <dir>/<id>/image   the disk file (its name is older than that word); only when the area is limited, whatever the setting says by now
//   <dir>/<id>/fs      where it is mounted, or else a plain tree: u is `upper`, w is `work` (overlay options have to be short), and r what
//                      a limited one keeps back
//
// Calls for one area wait for each other; those for different areas do not.

import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { asError, errnoOf, KeyedLock, PlatformError } from "@skerry/base";
import { hasIndex, removeIndex } from "../hard-links.privileged.ts";
import { assertAreaId, isAreaId, newAreaId } from "./area-id.ts";
import { AreaPool } from "./area-pool.ts";
import {
  DiskFileMaker,
  diskFileHostBytes,
  mountDiskFile,
  remountDiskFile,
  removeDiskFile,
  setMount,
  syncDiskFile,
  syncFilesystem,
  unmountDiskFile,
} from "./disk-file.privileged.ts";
import { assertFreeSpace } from "./free-space.ts";
import { holdBytes, keepRoom, ownBytes, withRoom } from "./kept-room.privileged.ts";

const FLUSHES_AT_ONCE = 2;
const DISK_FILE = "image";
/** What starting a sandbox takes beside its disk: a folder, a specification, the runtime's state and logs. */
const LAST_BYTES = 16 * 2 ** 20;

/** `file`: a disk file, with a file system of the size. `none`: a plain directory without a limit. */
export type DiskLimit = "file" | "none";

export interface DiskArea {
  readonly id: string;
  /** Directories on one file system, for overlayfs. */
  readonly upper: string;
  readonly work: string;
}

export interface NewArea {
  /** MiB; 0: without a limit. */
  readonly sizeMb: number;
  /** User and group that own `upper` and `work`. */
  readonly ownerId: number;
  /** Nobody asks for another one of its size, so it is not taken from those that are prepared. */
  readonly isOnlyOne?: boolean;
  /** What will be written into it at once. */
  readonly neededBytes?: number;
  /** Whoever asks can't go back: it is made as long as there is any space at all. */
  readonly isDue?: boolean;
}

export interface DiskAreasOptions {
  /** The areas' own folder, a real path; made when it is missing. */
  readonly dir: string;
  /** A folder on the same file system that takes trees which are not deleted at once; the caller empties it. */
  readonly trash: string;
  readonly limit: DiskLimit;
  /** How many areas of each lately used size are kept prepared. */
  readonly ready: number;
  /** Bytes that stay free on the disk of `dir`. Default: 1 GiB, or 2 % of it if that is more. */
  readonly reserveBytes?: number;
  /** Hears why none could be prepared; then `create` makes them itself, and says what is wrong. */
  readonly onFailure?: (error: Error) => void;
}

export interface DiskAreas {
  readonly limit: DiskLimit;
  /**
   * A new and empty area, mounted for writing; the id is one of `newAreaId`. What fails leaves nothing. Throws
   * PlatformError("disk_space_unavailable") when the machine's disk is nearly full.
   */
  create(id: string, options: NewArea): Promise<DiskArea>;
  /**
   * Throws PlatformError("disk_space_unavailable") when nothing new may begin on the machine's disk, or not with so many bytes in it. What
   * `isUnderWay` may go on for longer, but not until nothing is left.
   */
  assertRoom(options?: { neededBytes?: number; isUnderWay?: boolean }): Promise<void>;
  /**
   * Counts what other areas hold against the size of this one, on which it lies: as far as there is room, and never so far that nothing can
   * be written or deleted. Preconditions: all are open, and nothing writes to this one. Never throws.
   */
  charge(id: string, below: readonly string[]): void;
  /** Bytes that these hold of their own, as far as they are limited. Preconditions: they are open. */
  ownBytes(ids: readonly string[]): number;
  /** Mounts an overlay on an area, or whatever else has to work on one that a guest has filled. Preconditions: it is open for writing. */
  withRoom<T>(id: string, work: () => T): T;
  /** Where an area is, whether it is there or not. */
  paths(id: string): DiskArea;
  /**
   * Makes an area usable, after `close` and after the machine started again; any number of times. With `readOnly`, as a layer: nothing can
   * be written through it. Throws PlatformError("area_missing").
   */
  open(id: string, options?: { readOnly?: boolean }): Promise<DiskArea>;
  /**
   * Mounts the file system of one anew that has turned read-only since it was opened: the kernel finds late what it could not write while the
   * machine's disk was full. Preconditions: it is open for writing, and nothing uses it.
   */
  remount(id: string): Promise<void>;
  /** Whether nobody has written to it yet. Preconditions: it is open. */
  isEmpty(id: string): boolean;
  /**
   * Ends writing at once, however much of it is not on the disk yet. Preconditions: the overlay that wrote is unmounted.
   * The area stays usable as a layer.
   */
  freeze(id: string): Promise<void>;
  /** Resolves when everything that is in the area would survive a power loss. It stays usable. */
  sync(id: string): Promise<void>;
  /**
   * Like `sync`, and the area takes no memory and no device any more; does nothing when it is gone. Preconditions: no overlay uses it.
   */
  close(id: string): Promise<void>;
  /** Removes an area with all that it holds, whatever state it is in; does nothing when it is gone. What uses it fails from then on. */
  destroy(id: string): Promise<void>;
  /** All areas that are here, without those that are being made or are kept prepared. */
  list(): string[];
  /** Bytes that an area takes of the machine's disk; undefined for a plain tree, which nobody has counted. */
  hostBytes(id: string): Promise<number | undefined>;
  /** Keeps areas of this size prepared; `create` asks for this by itself. */
  prepare(sizeMb: number): void;
  /** Resolves when as many are prepared as are wanted. */
  prepared(): Promise<void>;
  /** Destroys the prepared ones. All others stay as they are. */
  stop(): Promise<void>;
}

/** Preconditions: root; one process at a time for a folder. */
export function openDiskAreas(options: DiskAreasOptions): DiskAreas {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  // They hold set-user-id programs, which no user of this machine may get at. Mounts are made with root's rights.
  chmodSync(options.dir, 0o700);
  return new Areas(options);
}

class Areas implements DiskAreas {
  readonly limit: DiskLimit;
  readonly #options: DiskAreasOptions;
  readonly #locks = new KeyedLock();
  readonly #maker = new DiskFileMaker();
  #flushes = 0;
  readonly #pool: AreaPool<DiskArea & { readonly madeAt: number }>;
  /** Being made or kept prepared: nobody refers to these, and nobody shall remove them. */
  readonly #unborn = new Set<string>();
  /** When there was too little room on the disk last, by a clock that nobody sets. */
  #shortAt = Number.NEGATIVE_INFINITY;

  constructor(options: DiskAreasOptions) {
    this.limit = options.limit;
    this.#options = options;
    this.#pool = new AreaPool({
      ready: options.limit === "none" ? 0 : options.ready,
      make: async (sizeMb) => {
        await this.assertRoom();
        return { ...(await this.#make(sizeMb, { isOnlyOne: false })), madeAt: performance.now() };
      },
      discard: async ({ id }) => {
        await this.#remove(id);
        this.#unborn.delete(id);
      },
      onFailure: (error) => options.onFailure?.(asError(error)),
    });
  }

  create(id: string, { sizeMb, ownerId, isOnlyOne = false, isDue = false, neededBytes = 0 }: NewArea): Promise<DiskArea> {
    const { dir, area } = this.#placeOf(id);
    return this.#locks.run(id, async () => {
      if (!isDue) await this.assertRoom({ neededBytes });
      const isPooled = this.#isLimited(sizeMb) && !isOnlyOne;
      const made = (isPooled ? await this.#takeWritable(sizeMb) : undefined) ?? (await this.#make(sizeMb, { isOnlyOne }));
      try {
        for (const path of [made.upper, made.work]) chownSync(path, ownerId, ownerId);
        // A mount goes with the folder that it is in.
        renameSync(this.#placeOf(made.id).dir, dir);
      } catch (error) {
        await this.#remove(made.id);
        throw error;
      } finally {
        this.#unborn.delete(made.id);
      }
      return area;
    });
  }

  /**
   * While the machine's disk was full, the file systems of those that were prepared may have turned read-only, or will as soon as the
   * kernel finds what it could not write: none from before that is used.
   */
  async #takeWritable(sizeMb: number): Promise<DiskArea | undefined> {
    for (let made = this.#pool.take(sizeMb); made; made = this.#pool.take(sizeMb)) {
      try {
        chownSync(made.upper, 0, 0);
        if (made.madeAt > this.#shortAt) return made;
      } catch (error) {
        if (!["EROFS", "EIO"].includes(errnoOf(error) ?? "")) throw error;
      }
      await this.#remove(made.id);
      this.#unborn.delete(made.id);
    }
    return undefined;
  }

  async assertRoom({ neededBytes = 0, isUnderWay = false } = {}): Promise<void> {
    const reserveBytes = isUnderWay ? LAST_BYTES : this.#options.reserveBytes;
    try {
      await assertFreeSpace(this.#options.dir, { reserveBytes, neededBytes });
    } catch (error) {
      this.#shortAt = performance.now();
      throw error;
    }
  }

  charge(id: string, below: readonly string[]): void {
    const { diskFile, target } = this.#placeOf(id);
    try {
      if (existsSync(diskFile)) holdBytes(target, this.ownBytes(below));
    } catch (error) {
      this.#options.onFailure?.(asError(error));
    }
  }

  ownBytes(ids: readonly string[]): number {
    const limited = ids.map((id) => this.#placeOf(id)).filter(({ diskFile }) => existsSync(diskFile));
    return limited.reduce((sum, { target }) => sum + ownBytes(target), 0);
  }

  withRoom<T>(id: string, work: () => T): T {
    const { diskFile, target } = this.#placeOf(id);
    return existsSync(diskFile) ? withRoom(target, work) : work();
  }

  paths(id: string): DiskArea {
    return this.#placeOf(id).area;
  }

  open(id: string, { readOnly = false }: { readOnly?: boolean } = {}): Promise<DiskArea> {
    return this.#locks.run(id, async () => {
      const { diskFile, target, area } = this.#placeOf(id);
      if (existsSync(diskFile)) await mountDiskFile({ diskFile, target, readOnly });
      if (!existsSync(area.upper)) throw new PlatformError("area_missing", `disk area ${id} is not on this machine`);
      if (readOnly && hasIndex(area.work)) await this.#removeIndex(id);
      return area;
    });
  }

  /** Nobody's any more, now that the area is a layer. One that stays, on a damaged disk, makes counts of names wrong, and costs nothing else. */
  async #removeIndex(id: string): Promise<void> {
    const { diskFile, target, area } = this.#placeOf(id);
    const isLimited = existsSync(diskFile);
    try {
      if (isLimited) await mountDiskFile({ diskFile, target, readOnly: false });
      await removeIndex(area.work);
    } catch (error) {
      this.#options.onFailure?.(asError(error));
    } finally {
      if (isLimited) setMount(target, { readOnly: true });
    }
  }

  remount(id: string): Promise<void> {
    return this.#locks.run(id, async () => {
      const { diskFile, target } = this.#placeOf(id);
      if (existsSync(diskFile)) await remountDiskFile({ diskFile, target });
    });
  }

  isEmpty(id: string): boolean {
    return readdirSync(this.#placeOf(id).area.upper).length === 0;
  }

  freeze(id: string): Promise<void> {
    return this.#locks.run(id, async () => {
      const { diskFile, target } = this.#placeOf(id);
      if (existsSync(diskFile)) setMount(target, { readOnly: true });
    });
  }

  sync(id: string): Promise<void> {
    return this.#locks.run(id, async () => {
      const { diskFile, target } = this.#placeOf(id);
      await this.#inTurn(() => (existsSync(diskFile) ? syncDiskFile({ diskFile, target }) : syncFilesystem(target)));
    });
  }

  close(id: string): Promise<void> {
    return this.#locks.run(id, async () => {
      const { diskFile, target } = this.#placeOf(id);
      if (!existsSync(target)) return;
      await this.#inTurn(() => (existsSync(diskFile) ? unmountDiskFile({ diskFile, target }) : syncFilesystem(target)));
    });
  }

  destroy(id: string): Promise<void> {
    return this.#locks.run(id, () => this.#remove(id));
  }

  list(): string[] {
    return readdirSync(this.#options.dir).filter((name) => isAreaId(name) && !this.#unborn.has(name));
  }

  async hostBytes(id: string): Promise<number | undefined> {
    const { diskFile } = this.#placeOf(id);
    return existsSync(diskFile) ? diskFileHostBytes(diskFile) : undefined;
  }

  prepare(sizeMb: number): void {
    if (sizeMb !== 0) this.#pool.want(sizeMb);
  }

  prepared(): Promise<void> {
    return this.#pool.settled();
  }

  stop(): Promise<void> {
    return this.#pool.close();
  }

  /** Flushes take seconds, of the four threads that all file operations of this process share: never all of them. */
  #inTurn<T>(flush: () => Promise<T>): Promise<T> {
    this.#flushes += 1;
    return this.#locks.run(`flush ${this.#flushes % FLUSHES_AT_ONCE}`, flush);
  }

  /** Under an id of its own, which `create` gives up for the caller's. What fails half-way is removed again. */
  async #make(sizeMb: number, { isOnlyOne }: { isOnlyOne: boolean }): Promise<DiskArea> {
    const id = newAreaId();
    const { dir, diskFile, target, area } = this.#placeOf(id);
    this.#unborn.add(id);
    try {
      for (const path of [dir, target]) mkdirSync(path, { mode: 0o700 });
      if (this.#isLimited(sizeMb)) {
        await this.#maker.make(diskFile, sizeMb, { isOnlyOne });
        await mountDiskFile({ diskFile, target, readOnly: false });
        keepRoom(target);
      }
      for (const path of [area.upper, area.work]) mkdirSync(path, { mode: 0o755 });
      return area;
    } catch (error) {
      await this.#remove(id);
      this.#unborn.delete(id);
      throw error;
    }
  }

  async #remove(id: string): Promise<void> {
    const { dir, diskFile, target } = this.#placeOf(id);
    await removeDiskFile({ diskFile, target });
    try {
      for (const path of [target, dir]) rmdirIfThere(path);
    } catch (error) {
      if (errnoOf(error) !== "ENOTEMPTY") throw error;
      // A plain tree: guests make millions of files, and nobody waits for their deletion.
      renameSync(dir, join(this.#options.trash, id));
    }
  }

  #isLimited(sizeMb: number): boolean {
    return this.limit === "file" && sizeMb !== 0;
  }

  #placeOf(id: string): { dir: string; diskFile: string; target: string; area: DiskArea } {
    assertAreaId(id);
    const dir = join(this.#options.dir, id);
    const target = join(dir, "fs");
    return { dir, diskFile: join(dir, DISK_FILE), target, area: { id, upper: join(target, "u"), work: join(target, "w") } };
  }
}

function rmdirIfThere(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

// Disk areas: the writable part of a sandbox's root file system, each with a fixed size.
//
// An area stays in its directory, `<dir>/<id>`, until nothing refers to it. Its owner writes to it through an overlay whose `upper` and `work`
// it contains. Later its `upper` may become a layer of any number of sandboxes, while a new area takes the next writes. This module does not
// know who uses an area: the caller records that before it calls `create`. After a crash, the caller destroys the areas of `list` that
// nothing refers to.
//
//   <dir>/<id>/image   the disk file (its name is older than that word); only if the area is limited, whatever the current setting is
//   <dir>/<id>/fs      where it is mounted, or a plain tree: u is `upper`, w is `work` (short names, because overlay options have to be
//                      short), and r is what a limited area reserves
//
// Calls for the same area run one after another; calls for different areas run at the same time.

import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
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
/** Free space without which nothing starts, even if it is under way: for the directory, specification, runtime state and logs of a sandbox. */
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
  /** No other area of its size follows, so it is not taken from the prepared ones. */
  readonly isOnlyOne?: boolean;
  /** Bytes that are written into it immediately. */
  readonly neededBytes?: number;
  /** The caller is past its point of no return: the area is created as long as there is any space. */
  readonly isDue?: boolean;
}

export interface DiskAreasOptions {
  /** The directory of the areas, a real path. Created if it is missing. */
  readonly dir: string;
  /** A directory on the same file system for trees that are deleted later. The caller empties it. */
  readonly trash: string;
  readonly limit: DiskLimit;
  /** How many areas of each recently used size are prepared ahead. */
  readonly ready: number;
  /** Bytes that stay free on the disk of `dir`. Default: 1 GiB, or 2 % of it if that is more. */
  readonly reserveBytes?: number;
  /** Called when no area could be prepared. `create` then creates areas itself and throws the reason. */
  readonly onFailure?: (error: Error) => void;
}

export interface AreaSpace {
  readonly totalBytes: number;
  readonly usedBytes: number;
}

export interface DiskAreas {
  readonly limit: DiskLimit;
  /**
   * Creates an empty area and mounts it for writing. The id comes from `newAreaId`. A failure leaves nothing. Throws
   * PlatformError("disk_space_unavailable") when the host's disk is nearly full.
   */
  create(id: string, options: NewArea): Promise<DiskArea>;
  /**
   * Throws PlatformError("disk_space_unavailable") when the host's disk has too little free space for a new operation that writes
   * `neededBytes`. An operation that `isUnderWay` may use more of the free space, but not all of it.
   */
  assertRoom(options?: { neededBytes?: number; isUnderWay?: boolean }): Promise<void>;
  /**
   * Counts the bytes of the areas below this one towards its size, as far as there is room. Some space always stays free for writing and
   * deleting. Preconditions: all are open, and nothing writes to this one. Never throws.
   */
  charge(id: string, below: readonly string[]): void;
  /** Bytes that the limited ones of these areas use themselves. Preconditions: they are open. */
  ownBytes(ids: readonly string[]): number;
  /** Runs `work`, such as mounting an overlay, with the area's reserve available. Preconditions: it is open for writing. */
  withRoom<T>(id: string, work: () => T): T;
  /** The paths of an area, whether it exists or not. */
  paths(id: string): DiskArea;
  /**
   * Makes an area usable after `close` or a reboot of the host. Idempotent. With `readOnly`, the area can only be a layer. Throws PlatformError("area_missing").
   */
  open(id: string, options?: { readOnly?: boolean }): Promise<DiskArea>;
  /**
   * Mounts the file system of an area again, because it has become read-only since it was opened: the kernel notices late what it could
   * not write while the host's disk was full. Preconditions: the area is open for writing, and nothing uses it.
   */
  remount(id: string): Promise<void>;
  /** Whether nothing was written to it yet. Preconditions: it is open. */
  isEmpty(id: string): boolean;
  /**
   * Makes the area read-only without waiting for data that is not on the disk yet. It stays usable as a layer. Preconditions: the overlay
   * that wrote to it is unmounted.
   */
  freeze(id: string): Promise<void>;
  /** Resolves when the area's content survives a power loss. The area stays usable. */
  sync(id: string): Promise<void>;
  /**
   * Like `sync`, and then unmounts the area, which frees its memory and device. Does nothing for a missing area. Preconditions: no overlay
   * uses it.
   */
  close(id: string): Promise<void>;
  /** Removes an area with its content, in any state. Does nothing for a missing area. Users of the area get errors from then on. */
  destroy(id: string): Promise<void>;
  /** All areas, without those that are being created or are prepared ahead. */
  list(): string[];
  /** Bytes that an area takes on the host's disk; undefined for a plain tree, which is not measured. */
  hostBytes(id: string): Promise<number | undefined>;
  /** What the file system of an open area has, and what is used of it. For a plain tree it is the host's file system. */
  space(id: string): Promise<AreaSpace>;
  /** Prepares areas of this size ahead. `create` calls this itself. */
  prepare(sizeMb: number): void;
  /** Resolves when enough areas are prepared. */
  prepared(): Promise<void>;
  /** Destroys the prepared areas. All others stay as they are. */
  stop(): Promise<void>;
}

/** Preconditions: root; one process at a time for a directory. */
export function openDiskAreas(options: DiskAreasOptions): DiskAreas {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  // Areas contain set-user-id programs, which no other user of the host may reach.
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
  /** Areas that are being created or are prepared ahead. Nothing refers to them, and `list` must not return them. */
  readonly #unborn = new Set<string>();
  /** When the disk last had too little free space, on a monotonic clock. */
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
        // A mount moves with its directory.
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
   * While the host's disk was full, the file systems of prepared areas may have become read-only, or will when the kernel notices what it
   * could not write. So areas from before that moment are not used.
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

  /** The index is not used any more, because the area is a layer now. If it stays (on a damaged disk), only link counts are wrong. */
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

  async space(id: string): Promise<AreaSpace> {
    const { blocks, bavail, bsize } = await statfs(this.#placeOf(id).target);
    return { totalBytes: blocks * bsize, usedBytes: (blocks - bavail) * bsize };
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

  /** Limits the number of flushes: each takes seconds of one of the four threads that all file operations of this process share. */
  #inTurn<T>(flush: () => Promise<T>): Promise<T> {
    this.#flushes += 1;
    return this.#locks.run(`flush ${this.#flushes % FLUSHES_AT_ONCE}`, flush);
  }

  /** Uses an id of its own, which `create` replaces with the caller's. A failure removes what was created. */
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
      // A plain tree may have millions of files, and nothing waits for their deletion.
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

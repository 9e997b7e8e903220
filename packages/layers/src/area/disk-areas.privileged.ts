// Disk areas: the writable part of a sandbox's root file system, each with a size that it cannot outgrow.
//
// An area stays where it was made, `<dir>/<id>`, until nobody refers to it. Its owner writes to it through an overlay whose `upper`
// and `work` are in it; later its `upper` may become a layer of any number of sandboxes, while a new area takes what is written next.
// The areas know nothing of their users: who refers to one is written down by the caller, before `create` by nobody and after it at
// once. What a crash leaves without an entry there is found by `list` and destroyed.
//
// What is on the disk says what an area is, so that one survives a change of the setting: with an image `<dir>/<id>.img` it is limited,
// without one it is a plain tree.
//
// Calls for one area wait for each other; those for different areas do not.

import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { rename, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { asError, errnoOf, KeyedLock, type Logger, PlatformError } from "@skerry/base";
import { type AreaId, areaIdsOf, newAreaId } from "./area-id.ts";
import { AreaPool } from "./area-pool.ts";
import { assertFreeSpace } from "./free-space.ts";
import { imageHostBytes, makeImage, mountImage, removeImage, setMount, syncImage, unmountImage } from "./image.privileged.ts";

/** `image`: a sparse file with a file system of the size. `none`: a folder of the host's, without any limit. */
export type DiskLimit = "image" | "none";

export interface DiskArea {
  readonly id: AreaId;
  /** Directories on one file system, for overlayfs. */
  readonly upper: string;
  readonly work: string;
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
  readonly logger: Logger;
}

export interface DiskAreas {
  readonly limit: DiskLimit;
  /**
   * A new and empty area, mounted for writing. `sizeMb` 0 is one without a limit. `ownerId` (of user and group) owns `upper` and `work`.
   * Throws PlatformError("capacity_unavailable") when the machine's disk is nearly full.
   */
  create(options: { sizeMb: number; ownerId: number }): Promise<DiskArea>;
  /**
   * Makes an area usable, after `close` and after the machine started again; any number of times. With `readOnly`, as a layer: nothing can
   * be written through it. Throws PlatformError("area_missing").
   */
  open(id: AreaId, options?: { readOnly?: boolean }): Promise<DiskArea>;
  /**
   * Ends writing at once, however much of it is not on the disk yet. Preconditions: the overlay that wrote is unmounted.
   * The area stays usable as a layer.
   */
  freeze(id: AreaId): Promise<void>;
  /** Resolves when everything that is in the area would survive a power loss. It stays usable. */
  sync(id: AreaId): Promise<void>;
  /** Like `sync`, and the area takes no memory and no device any more. Preconditions: no overlay uses it. */
  close(id: AreaId): Promise<void>;
  /** Removes an area with all that it holds, whatever state it is in; does nothing when it is gone. What uses it fails from then on. */
  destroy(id: AreaId): Promise<void>;
  /** All areas that are here, without those that are being made or are kept prepared. */
  list(): AreaId[];
  /** Bytes that an area takes of the machine's disk; undefined for a plain tree, which nobody has counted. */
  hostBytes(id: AreaId): Promise<number | undefined>;
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
  readonly #pool: AreaPool<DiskArea>;
  /** Being made or kept prepared: nobody refers to these, and nobody shall remove them. */
  readonly #unborn = new Set<AreaId>();

  constructor(options: DiskAreasOptions) {
    this.limit = options.limit;
    this.#options = options;
    this.#pool = new AreaPool({
      ready: options.limit === "none" ? 0 : options.ready,
      make: (sizeMb) => this.#make(sizeMb),
      discard: async (area) => {
        await this.destroy(area.id);
        this.#unborn.delete(area.id);
      },
      onFailure: (error) => options.logger.warn({ err: asError(error) }, "disk areas could not be prepared"),
    });
  }

  async create({ sizeMb, ownerId }: { sizeMb: number; ownerId: number }): Promise<DiskArea> {
    await assertFreeSpace(this.#options.dir, this.#options.reserveBytes);
    const prepared = this.limit === "none" || sizeMb === 0 ? undefined : this.#pool.take(sizeMb);
    const area = prepared ?? (await this.#make(sizeMb));
    for (const path of [area.upper, area.work]) chownSync(path, ownerId, ownerId);
    this.#unborn.delete(area.id);
    return area;
  }

  open(id: AreaId, { readOnly = false }: { readOnly?: boolean } = {}): Promise<DiskArea> {
    return this.#locks.run(id, async () => {
      const { image, target, area } = this.#pathsOf(id);
      if (existsSync(image)) await mountImage({ image, target, readOnly });
      if (!existsSync(area.upper)) throw new PlatformError("area_missing", `disk area ${id} is not on this machine`);
      return area;
    });
  }

  freeze(id: AreaId): Promise<void> {
    return this.#locks.run(id, async () => {
      const { image, target } = this.#pathsOf(id);
      if (existsSync(image)) setMount(target, { readOnly: true });
    });
  }

  sync(id: AreaId): Promise<void> {
    return this.#locks.run(id, async () => {
      const { image, target } = this.#pathsOf(id);
      if (existsSync(image)) await syncImage({ image, target });
    });
  }

  close(id: AreaId): Promise<void> {
    return this.#locks.run(id, async () => {
      const { image, target } = this.#pathsOf(id);
      if (existsSync(image)) await unmountImage({ image, target });
    });
  }

  destroy(id: AreaId): Promise<void> {
    return this.#locks.run(id, async () => {
      const { image, target } = this.#pathsOf(id);
      await removeImage({ image, target });
      try {
        await rmdir(target);
      } catch (error) {
        // A plain tree: guests make millions of files, and nobody waits for their deletion.
        if (errnoOf(error) === "ENOTEMPTY") await rename(target, join(this.#options.trash, id));
        else if (errnoOf(error) !== "ENOENT") throw error;
      }
    });
  }

  list(): AreaId[] {
    return areaIdsOf(readdirSync(this.#options.dir)).filter((id) => !this.#unborn.has(id));
  }

  async hostBytes(id: AreaId): Promise<number | undefined> {
    const { image } = this.#pathsOf(id);
    return existsSync(image) ? imageHostBytes(image) : undefined;
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

  /** What fails half-way is removed again. */
  async #make(sizeMb: number): Promise<DiskArea> {
    const id = newAreaId();
    const { image, target, area } = this.#pathsOf(id);
    this.#unborn.add(id);
    try {
      await assertFreeSpace(this.#options.dir, this.#options.reserveBytes);
      if (this.limit === "image" && sizeMb !== 0) {
        const { type: hostType } = await statfs(this.#options.dir);
        await makeImage({ path: image, sizeMb, hostType });
        mkdirSync(target, { mode: 0o700 });
        await mountImage({ image, target, readOnly: false });
      } else {
        mkdirSync(target, { mode: 0o700 });
      }
      for (const path of [area.upper, area.work]) mkdirSync(path, { mode: 0o755 });
      return area;
    } catch (error) {
      await this.destroy(id);
      this.#unborn.delete(id);
      throw error;
    }
  }

  #pathsOf(id: AreaId): { image: string; target: string; area: DiskArea } {
    const target = join(this.#options.dir, id);
    return { image: `${target}.img`, target, area: { id, upper: join(target, "upper"), work: join(target, "work") } };
  }
}

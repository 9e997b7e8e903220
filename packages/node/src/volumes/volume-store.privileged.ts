// The volumes of this machine: file systems with a size, which outlive sandboxes and are shared between them.
//
//   <dir>/<id>/volume.json   its record
//   <dir>/<id>/image         its disk file, a sparse file with an ext4 file system
//   <dir>/<id>/fs            where it is mounted while something uses it: one mount for all sandboxes
//     fs/data                the root of the volume, which is all that sandboxes and callers can reach
//     fs/staged              files that are being written, and get their place by a rename
//     fs/trash               removed entries, which are deleted in the background
//   <dir>/new-…              a volume that is being created; the next start removes it
//   <dir>/trash/…            deleted volumes
//
// A volume is mounted when it is first used, and unmounted some time after its last use. Calls for one volume run one after another.

import { randomBytes } from "node:crypto";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { open, statfs } from "node:fs/promises";
import { join } from "node:path";
import { asError, KeyedLock, type Logger, PlatformError } from "@skerry/base";
import { DIRECTORY } from "@skerry/base/beneath";
import { lockFile, syncDirectory } from "@skerry/base/linux";
import { assertFreeSpace, DiskFileMaker, isMountPoint, mountDiskFile, removeDiskFile, syncDiskFile, unmountDiskFile } from "@skerry/layers";
import type { VolumePlan } from "@skerry/runtime";
import { crashPoint } from "../crash-points.ts";
import { readRecordFile, writeRecordDurably } from "../records/record-file.privileged.ts";
import { parseVolumeRecord, type VolumeRecord } from "../records/volume-record.ts";
import { emptyFolder } from "./empty-folder.privileged.ts";
import { volumeError, withVolumeErrors } from "./volume-errors.ts";
import { assertVolumeId, isVolumeId, type VolumeMount } from "./volume-mount.ts";

const MIB = 1024 * 1024;
const LEAST_MB = 8;
const CLOSE_AFTER_MS = 60_000;
/** The first user of our templates. Every user can write to the root of a new volume. */
const FIRST_OWNER = 1000;
const ROOT_MODE = 0o777;

/** Descriptors of the directories of a mounted volume. They are closed after the call that they were passed to. */
export interface OpenVolume {
  readonly data: number;
  readonly staged: number;
  readonly trash: number;
}

export interface VolumeUsage {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

export interface VolumeStoreOptions {
  /** A real path. Created when the first volume is. */
  readonly dir: string;
  readonly logger: Logger;
}

export class VolumeStore {
  readonly #dir: string;
  readonly #logger: Logger;
  readonly #locks = new KeyedLock();
  readonly #maker = new DiskFileMaker();
  /** How many calls use a mounted volume now. */
  readonly #calls = new Map<string, number>();
  readonly #closing = new Map<string, NodeJS.Timeout>();
  /** Volumes whose leftovers of an earlier process were removed. */
  readonly #swept = new Set<string>();
  /** Volumes whose trash is being emptied, and whether something was added since that began. */
  readonly #removing = new Map<string, boolean>();
  #lock: number | undefined;
  #emptying: Promise<void> = Promise.resolve();
  /** The sandboxes that mount a volume: of running ones, and of paused ones. */
  usersOf: (volumeId: string) => { readonly running: readonly string[]; readonly paused: readonly string[] } = () => ({
    running: [],
    paused: [],
  });

  constructor({ dir, logger }: VolumeStoreOptions) {
    this.#dir = dir;
    this.#logger = logger;
  }

  /** Takes the folder for this process. Throws PlatformError("already_running") when the node of another data folder uses it. */
  start(): void {
    if (!existsSync(this.#dir)) return;
    this.#take();
    for (const name of readdirSync(this.#dir).filter((one) => one.startsWith("new-"))) this.#moveToTrash(join(this.#dir, name));
    void this.#emptyTrash();
    for (const volumeId of this.#ids()) if (isMountPoint(this.#paths(volumeId).fs)) this.#closeLater(volumeId);
  }

  async create(volumeId: string, sizeBytes: number): Promise<boolean> {
    assertVolumeId(volumeId);
    const sizeMb = Math.max(LEAST_MB, Math.ceil(sizeBytes / MIB));
    return this.#locks.run(volumeId, async () => {
      if (existsSync(this.#paths(volumeId).dir)) return false;
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      this.#take();
      await assertFreeSpace(this.#dir);
      const staged = join(this.#dir, `new-${randomBytes(8).toString("hex")}`);
      try {
        await this.#make(staged, { version: 1, volumeId, sizeMb, createdAtMs: Date.now() });
        renameSync(staged, this.#paths(volumeId).dir);
      } catch (error) {
        this.#moveToTrash(staged);
        await this.#emptyTrash();
        throw error;
      }
      syncDirectory(this.#dir);
      crashPoint("volume.created");
      this.#closeLater(volumeId);
      return true;
    });
  }

  async #make(dir: string, record: VolumeRecord): Promise<void> {
    mkdirSync(dir, { mode: 0o700 });
    const [diskFile, fs] = [join(dir, "image"), join(dir, "fs")];
    mkdirSync(fs, { mode: 0o700 });
    try {
      await this.#maker.make(diskFile, record.sizeMb);
    } catch (error) {
      throw error instanceof RangeError ? new PlatformError("invalid_argument", `volume ${record.volumeId}: ${error.message}`) : error;
    }
    await mountDiskFile({ diskFile, target: fs, readOnly: false, noSetId: true });
    for (const name of ["data", "staged", "trash"]) mkdirSync(join(fs, name), { mode: 0o700 });
    const root = await open(join(fs, "data"));
    try {
      await root.chown(FIRST_OWNER, FIRST_OWNER);
      await root.chmod(ROOT_MODE);
    } finally {
      await root.close();
    }
    chownSync(fs, 0, 0);
    await syncDiskFile({ diskFile, target: fs });
    writeRecordDurably(join(dir, "volume.json"), record);
    crashPoint("volume.made");
  }

  /** Resolves when no process can open the volume any more. Users of it get EIO. Returns false when there was none. */
  async delete(volumeId: string, { force }: { force: boolean }): Promise<boolean> {
    assertVolumeId(volumeId);
    return this.#locks.run(volumeId, async () => {
      const { dir } = this.#paths(volumeId);
      if (!existsSync(dir)) return false;
      const { running, paused } = this.usersOf(volumeId);
      if (!force && running.length + paused.length > 0) {
        const names = [...running, ...paused].slice(0, 10).join(", ");
        throw volumeError("volume_in_use", `sandboxes mount the volume: ${names}`);
      }
      this.#take();
      // The mount moves with its directory.
      this.#moveToTrash(dir);
      syncDirectory(this.#dir);
      this.#swept.delete(volumeId);
      crashPoint("volume.deleted");
      const emptied = this.#emptyTrash();
      // What a sandbox writes from now on must fail, and not be lost with the disk file.
      if (running.length > 0) await emptied;
      return true;
    });
  }

  list(): { volumeId: string; sizeBytes: number }[] {
    return this.#ids().map((volumeId) => {
      const found = readRecordFile(this.#paths(volumeId).record, parseVolumeRecord);
      return { volumeId, sizeBytes: typeof found === "string" ? 0 : found.record.sizeMb * MIB };
    });
  }

  get holdsAnything(): boolean {
    return this.#ids().length > 0;
  }

  has(volumeId: string): boolean {
    return isVolumeId(volumeId) && existsSync(this.#paths(volumeId).dir);
  }

  /** Throws PlatformError("volume_missing" | "volume_damaged"). */
  sizeBytes(volumeId: string): number {
    return this.#record(volumeId).sizeMb * MIB;
  }

  usage(volumeId: string): Promise<VolumeUsage> {
    return this.use(volumeId, async () => {
      const { bsize, blocks, bfree } = await statfs(this.#paths(volumeId).fs);
      return { totalBytes: bsize * blocks, usedBytes: bsize * (blocks - bfree) };
    });
  }

  /** Mounts the volume for a sandbox. Returns its root. It stays mounted while `usersOf` names the sandbox. */
  mountForSandbox(volumeId: string): Promise<string> {
    return this.#locks.run(volumeId, async () => {
      await this.#mount(volumeId);
      this.#closeLater(volumeId);
      return join(this.#paths(volumeId).fs, "data");
    });
  }

  /** Runs `work` on the mounted volume, and turns errors of the system into those of the node. */
  async use<T>(volumeId: string, work: (volume: OpenVolume) => Promise<T>): Promise<T> {
    const volume = await this.open(volumeId);
    try {
      return await withVolumeErrors(() => work(volume));
    } finally {
      volume.close();
    }
  }

  /** Like `use`, for streams: the caller closes it. */
  async open(volumeId: string): Promise<OpenVolume & { close(): void }> {
    assertVolumeId(volumeId);
    return this.#locks.run(volumeId, async () => {
      await this.#mount(volumeId);
      const { fs } = this.#paths(volumeId);
      // A descriptor that stays open keeps the disk file of a deleted volume, also when the next one can't be opened.
      using opened = new DisposableStack();
      const descriptorOf = (name: string) => opened.adopt(openSync(join(fs, name), DIRECTORY), closeSync);
      const [data, staged, trash] = [descriptorOf("data"), descriptorOf("staged"), descriptorOf("trash")];
      this.#calls.set(volumeId, (this.#calls.get(volumeId) ?? 0) + 1);
      const descriptors = opened.move();
      const close = () => {
        descriptors.dispose();
        this.#calls.set(volumeId, (this.#calls.get(volumeId) ?? 1) - 1);
        this.#closeLater(volumeId);
      };
      return { data, staged, trash, close };
    });
  }

  /** Where mounted volumes are on the host. */
  plansOf(mounts: readonly VolumeMount[] = []): VolumePlan[] {
    return mounts.map(({ volumeId, path }) => ({ path, dir: join(this.#paths(volumeId).fs, "data") }));
  }

  /** Deletes what is in the trash of a volume, in the background: one call at a time, however many removals there are. */
  emptyTrashOf(volumeId: string): void {
    const isRunning = this.#removing.has(volumeId);
    this.#removing.set(volumeId, isRunning);
    if (!isRunning) void this.#emptyTrashOf(volumeId);
  }

  async #emptyTrashOf(volumeId: string): Promise<void> {
    try {
      do {
        this.#removing.set(volumeId, false);
        await this.use(volumeId, ({ trash }) => emptyFolder(trash));
      } while (this.#removing.get(volumeId));
    } catch (error) {
      if (!this.has(volumeId)) return;
      this.#logger.warn(
        { volume_id: volumeId, err: asError(error) },
        "deleting removed files of a volume failed; the next removal tries again",
      );
    } finally {
      this.#removing.delete(volumeId);
    }
  }

  /** Ends the work in the background. The mounts stay, for the sandboxes that go on. */
  async stop(): Promise<void> {
    for (const timer of this.#closing.values()) clearTimeout(timer);
    this.#closing.clear();
    await this.#emptying;
    if (this.#lock !== undefined) closeSync(this.#lock);
    this.#lock = undefined;
  }

  /** Unmounts every volume, and removes what is left of deleted ones. Preconditions: no sandbox runs. Returns how many were mounted. */
  async unmountAll(): Promise<number> {
    if (!existsSync(this.#dir)) return 0;
    this.#take();
    let mounted = 0;
    for (const volumeId of this.#ids()) {
      const { diskFile, fs } = this.#paths(volumeId);
      if (!isMountPoint(fs)) continue;
      mounted += 1;
      await this.#locks.run(volumeId, () => unmountDiskFile({ diskFile, target: fs }));
    }
    await this.#emptyTrash();
    await this.stop();
    return mounted;
  }

  /** Deletes every volume and leaves an empty folder. Preconditions: no sandbox runs. Returns how many there were. */
  async removeAll(): Promise<number> {
    if (!existsSync(this.#dir)) return 0;
    this.#take();
    const ids = this.#ids();
    for (const volumeId of ids) this.#moveToTrash(this.#paths(volumeId).dir);
    await this.#emptyTrash();
    // Fails when something could not be removed, and then keeps it.
    if (existsSync(join(this.#dir, "trash"))) rmdirSync(join(this.#dir, "trash"));
    rmSync(join(this.#dir, "volumes.lock"), { force: true });
    await this.stop();
    return ids.length;
  }

  #record(volumeId: string): VolumeRecord {
    const { record } = this.#paths(volumeId);
    const found = isVolumeId(volumeId) ? readRecordFile(record, parseVolumeRecord) : "missing";
    if (found === "missing") throw volumeError("volume_missing", `volume ${volumeId} is not on this machine`);
    if (found === "damaged") throw volumeError("volume_damaged", `the record of volume ${volumeId} can't be read`);
    return found.record;
  }

  async #mount(volumeId: string): Promise<void> {
    this.#record(volumeId);
    const { diskFile, fs } = this.#paths(volumeId);
    if (!isMountPoint(fs)) await mountDiskFile({ diskFile, target: fs, readOnly: false, noSetId: true });
    if (this.#swept.has(volumeId)) return;
    this.#swept.add(volumeId);
    // What an earlier process was writing or removing.
    await this.#sweep(join(fs, "staged"));
    setImmediate(() => this.emptyTrashOf(volumeId));
  }

  async #sweep(path: string): Promise<void> {
    const fd = openSync(path, DIRECTORY);
    try {
      await emptyFolder(fd);
    } finally {
      closeSync(fd);
    }
  }

  #closeLater(volumeId: string): void {
    clearTimeout(this.#closing.get(volumeId));
    const timer = setTimeout(() => void this.#closeIfUnused(volumeId), CLOSE_AFTER_MS);
    this.#closing.set(volumeId, timer.unref());
  }

  #closeIfUnused(volumeId: string): Promise<void> {
    this.#closing.delete(volumeId);
    return this.#locks.run(volumeId, async () => {
      const { diskFile, fs } = this.#paths(volumeId);
      if ((this.#calls.get(volumeId) ?? 0) > 0 || !this.has(volumeId)) return;
      // Asked again later: nothing tells when the last sandbox has ended.
      if (this.usersOf(volumeId).running.length > 0) return this.#closeLater(volumeId);
      try {
        await unmountDiskFile({ diskFile, target: fs });
      } catch (error) {
        this.#logger.warn({ volume_id: volumeId, err: asError(error) }, "unmounting a volume failed; will be tried again");
        this.#closeLater(volumeId);
      }
    });
  }

  #moveToTrash(dir: string): void {
    if (!existsSync(dir)) return;
    const trash = join(this.#dir, "trash");
    mkdirSync(trash, { recursive: true, mode: 0o700 });
    renameSync(dir, join(trash, randomBytes(8).toString("hex")));
  }

  /** Frees the space of deleted volumes. Never throws: what stays is removed at the next start. */
  #emptyTrash(): Promise<void> {
    this.#emptying = this.#emptying.then(async () => {
      const trash = join(this.#dir, "trash");
      if (!existsSync(trash)) return;
      for (const name of readdirSync(trash)) {
        const dir = join(trash, name);
        try {
          await removeDiskFile({ diskFile: join(dir, "image"), target: join(dir, "fs") });
          crashPoint("volume.removed");
          rmSync(dir, { recursive: true, force: true });
        } catch (error) {
          this.#logger.warn({ dir, err: asError(error) }, "removing a deleted volume failed; the next start tries again");
        }
      }
    });
    return this.#emptying;
  }

  /** Two nodes on one folder would remove each other's volumes. */
  #take(): void {
    if (this.#lock !== undefined) return;
    const fd = openSync(join(this.#dir, "volumes.lock"), "w", 0o600);
    if (!lockFile(fd)) {
      closeSync(fd);
      throw new PlatformError(
        "already_running",
        `another platform uses the folder of volumes ${this.#dir}: set SKERRY_VOLUMES to another one`,
      );
    }
    this.#lock = fd;
  }

  #ids(): string[] {
    return existsSync(this.#dir) ? readdirSync(this.#dir).filter(isVolumeId) : [];
  }

  #paths(volumeId: string) {
    const dir = join(this.#dir, volumeId);
    return { dir, record: join(dir, "volume.json"), diskFile: join(dir, "image"), fs: join(dir, "fs") };
  }
}

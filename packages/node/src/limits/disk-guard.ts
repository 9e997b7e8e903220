// Prevents the host's data disk from getting full. The file systems of all sandboxes lie on it. On a full disk they would lose data, or become
// read-only, whichever sandbox filled it. When the free space falls below a floor, the sandboxes whose disks grow are paused.
//
// Data that a guest has written is in the kernel's memory first and takes disk blocks later. It counts as used already.

import { asError, type Logger } from "@skerry/base";
import type { DiskReserve } from "../disk/disk-reserve.privileged.ts";
import type { DiskSpace } from "../disk/disk-space.privileged.ts";

const MIB = 1024 * 1024;
/** Upper bound of the rate at which a disk fills. It determines how long the guard may wait. */
const BYTES_PER_MS = 4 * MIB;
const SOONEST_MS = 20;
const LATEST_MS = 1_000;
/** With more free space above the floor than this, the guard does not measure the sandboxes. */
const WATCHED_BYTES = 4 * 1024 * MIB;
/** Half-life of the measured growth. */
const HALF_LIFE_MS = 3_000;
/** Share of the remaining space that a sandbox must have taken recently to be paused. At this rate it would fill the rest within a minute. */
const GROWTH_SHARE = HALF_LIFE_MS / Math.LN2 / 60_000;
const LEAST_GROWTH_BYTES = MIB;
/** Free space below which the guard releases the reserve. */
const RELEASE_BELOW_BYTES = 32 * MIB;
/** Free space below which the guard pauses a sandbox without waiting for the pause of another one. */
const CLOSE_BYTES = 128 * MIB;
const TELL_EVERY_MS = 60_000;

/** A running sandbox with a disk area of its own. */
export interface DiskUser {
  readonly key: string;
  readonly sandboxId: string;
  /** Bytes of the disk that the sandbox's area takes; undefined when this cannot be measured. */
  readonly areaBytes: () => Promise<number | undefined>;
  /** Bytes that the sandbox has written and that are not in its area yet. */
  readonly unwrittenBytes: () => number;
}

export interface DiskGuardOptions {
  readonly space: () => DiskSpace;
  readonly unwrittenBytes: () => number;
  readonly reserve: DiskReserve;
  /** The floor of free space, for the size of the disk. */
  readonly floorBytes: (totalBytes: number) => number;
  readonly users: () => DiskUser[];
  /** Pauses a sandbox. Resolves when it is paused. */
  readonly onShort: (user: DiskUser, facts: { readonly freeBytes: number; readonly grewBytes: number }) => Promise<void>;
  readonly logger: Logger;
}

interface Growth {
  readonly bytes: number;
  /** Recent growth in bytes; older growth counts less. */
  readonly recent: number;
  readonly at: number;
}

export class DiskGuard {
  readonly #options: DiskGuardOptions;
  readonly #growth = new Map<string, Growth>();
  readonly #stopping = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: DiskGuardOptions) {
    this.#options = options;
  }

  start(): void {
    this.#lookIn(0);
  }

  /** Stops the guard. Resolves when all measurements and pauses have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
    await Promise.all(this.#stopping.values());
  }

  #lookIn(ms: number): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#tryToLook();
    }, ms).unref();
  }

  async #tryToLook(): Promise<void> {
    let nextMs = LATEST_MS;
    try {
      nextMs = await this.#look();
    } catch (error) {
      this.#options.logger.error({ err: asError(error) }, "the free space of the data disk could not be read");
    }
    this.#lookIn(nextMs);
  }

  /** Returns the time to the next check, in milliseconds. */
  async #look(): Promise<number> {
    const { space, unwrittenBytes, floorBytes } = this.#options;
    const { freeBytes, totalBytes } = space();
    const floor = floorBytes(totalBytes);
    await this.#keepReserve(freeBytes, floor);
    // All unwritten data of the host, for any disk: an upper bound for this one.
    const distance = freeBytes - unwrittenBytes() - floor;
    if (distance > WATCHED_BYTES) {
      this.#growth.clear();
      return nextLookMs(distance - WATCHED_BYTES);
    }
    const users = this.#options.users();
    const unwritten = await this.#measure(users);
    const left = freeBytes - unwritten - floor;
    if (left > 0) return nextLookMs(Math.max(distance, 0));
    if (this.#stopWhoGrows(users, freeBytes)) return SOONEST_MS;
    return Math.min(nextLookMs(Math.max(freeBytes - RELEASE_BELOW_BYTES, 0)), LATEST_MS / 4);
  }

  async #keepReserve(freeBytes: number, floor: number): Promise<void> {
    const { reserve, logger } = this.#options;
    if (freeBytes < RELEASE_BELOW_BYTES && reserve.release()) {
      logger.error(
        { free_bytes: freeBytes, released_bytes: reserve.bytes },
        "the data disk is full: what was kept back for this is used now",
      );
    }
    if (freeBytes > floor + reserve.bytes && !reserve.isThere) await reserve.make();
  }

  /** Measures the sandboxes. Returns the bytes that they have written and that take no space yet. */
  async #measure(users: readonly DiskUser[]): Promise<number> {
    const now = performance.now();
    let allUnwritten = 0;
    const seen = new Set<string>();
    for (const user of users) {
      const unwritten = user.unwrittenBytes();
      allUnwritten += unwritten;
      const area = await user.areaBytes();
      if (area === undefined) continue;
      seen.add(user.key);
      this.#growth.set(user.key, grown(this.#growth.get(user.key), area + unwritten, now));
    }
    for (const key of this.#growth.keys()) if (!seen.has(key)) this.#growth.delete(key);
    return allUnwritten;
  }

  /** During a pause, the data that the pause writes must not cause another one, unless the disk is almost full. */
  #stopWhoGrows(users: readonly DiskUser[], freeBytes: number): boolean {
    const growthOf = ({ key }: DiskUser) => this.#growth.get(key)?.recent ?? 0;
    const [first] = users.filter(({ key }) => !this.#stopping.has(key)).toSorted((a, b) => growthOf(b) - growthOf(a));
    const grewBytes = first ? Math.round(growthOf(first)) : 0;
    if (!first || grewBytes < Math.max(freeBytes * GROWTH_SHARE, LEAST_GROWTH_BYTES)) {
      if (this.#stopping.size === 0) this.#tell(freeBytes);
      return this.#stopping.size > 0;
    }
    if (this.#stopping.size > 0 && freeBytes > CLOSE_BYTES) return true;
    this.#stopping.set(first.key, this.#stop(first, { freeBytes, grewBytes }));
    return true;
  }

  async #stop(user: DiskUser, facts: { freeBytes: number; grewBytes: number }): Promise<void> {
    try {
      await this.#options.onShort(user, facts);
    } catch (error) {
      this.#options.logger.error({ sandbox_id: user.sandboxId, err: asError(error) }, "pausing a sandbox that fills the data disk failed");
    } finally {
      this.#stopping.delete(user.key);
      this.#growth.delete(user.key);
    }
  }

  #tell(freeBytes: number): void {
    const now = performance.now();
    if (now - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = now;
    this.#options.logger.error({ free_bytes: freeBytes }, "the data disk is almost full, and no sandbox fills it");
  }
}

function grown(before: Growth | undefined, bytes: number, now: number): Growth {
  if (!before) return { bytes, recent: 0, at: now };
  const kept = before.recent * 2 ** (-(now - before.at) / HALF_LIFE_MS);
  return { bytes, recent: kept + Math.max(0, bytes - before.bytes), at: now };
}

/** The time in which this many bytes could be written at the highest rate. */
function nextLookMs(bytes: number): number {
  return Math.min(Math.max(bytes / BYTES_PER_MS, SOONEST_MS), LATEST_MS);
}

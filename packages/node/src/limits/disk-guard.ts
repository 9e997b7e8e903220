// Keeps the disk that all sandboxes share from getting full: their file systems lie on it, and would lose what they were writing, and
// perhaps turn read-only, whoever has filled it. Below a floor, half of what is kept back from creates, whoever grows is paused.
//
// What a guest has written is in the kernel's memory first and takes its blocks later, so that counts as taken already.

import { asError, type Logger } from "@skerry/base";
import type { DiskReserve } from "../disk/disk-reserve.privileged.ts";
import type { DiskSpace } from "../disk/disk-space.privileged.ts";

const MIB = 1024 * 1024;
/** Faster than disks have been seen to fill. */
const BYTES_PER_MS = 4 * MIB;
const SOONEST_MS = 20;
const LATEST_MS = 1_000;
/** So far above the floor, sizes are not looked at. */
const WATCHED_BYTES = 4 * 1024 * MIB;
/** Growth is forgotten by half in this time. */
const HALF_LIFE_MS = 3_000;
/** Who would take longer than a minute to fill what is left does not fill the disk. */
const GROWTH_SHARE = HALF_LIFE_MS / Math.LN2 / 60_000;
const LEAST_GROWTH_BYTES = MIB;
/** The reserve is given up below this. */
const RELEASE_BELOW_BYTES = 32 * MIB;
/** With less, nobody waits for the pause of another one. */
const CLOSE_BYTES = 128 * MIB;
const TELL_EVERY_MS = 60_000;

/** One that runs and has a disk area of its own. */
export interface DiskUser {
  readonly key: string;
  readonly sandboxId: string;
  /** Bytes that its area takes of the disk; undefined where nobody knows. */
  readonly areaBytes: () => Promise<number | undefined>;
  /** Bytes that it has written and that have not reached its area. */
  readonly unwrittenBytes: () => number;
}

export interface DiskGuardOptions {
  readonly space: () => DiskSpace;
  readonly unwrittenBytes: () => number;
  readonly reserve: DiskReserve;
  /** What stays free, given the size of the disk. */
  readonly floorBytes: (totalBytes: number) => number;
  readonly users: () => DiskUser[];
  /** Pauses one. Resolves when that is done. */
  readonly onShort: (user: DiskUser, facts: { readonly freeBytes: number; readonly grewBytes: number }) => Promise<void>;
  readonly logger: Logger;
}

interface Growth {
  readonly bytes: number;
  /** Lately, and less the longer ago it was. */
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

  /** Resolves when nothing that was begun goes on. */
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
      this.#options.logger.error({ err: asError(error) }, "the room on the data disk could not be looked at");
    }
    this.#lookIn(nextMs);
  }

  /** Answers when to look again, in milliseconds. */
  async #look(): Promise<number> {
    const { space, unwrittenBytes, floorBytes } = this.#options;
    const { freeBytes, totalBytes } = space();
    const floor = floorBytes(totalBytes);
    await this.#keepReserve(freeBytes, floor);
    // All that this machine writes, anywhere: never less than what is on its way to this disk.
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

  /** Answers how much all of them have written that takes no room yet. */
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

  /** While one is being stopped, what its pause writes must not cost others their turn: only when it gets really close. */
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
      this.#options.logger.error({ sandbox_id: user.sandboxId, err: asError(error) }, "a sandbox that fills the data disk was not paused");
    } finally {
      this.#stopping.delete(user.key);
      this.#growth.delete(user.key);
    }
  }

  #tell(freeBytes: number): void {
    const now = performance.now();
    if (now - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = now;
    this.#options.logger.error({ free_bytes: freeBytes }, "the data disk is nearly full, and no sandbox fills it");
  }
}

function grown(before: Growth | undefined, bytes: number, now: number): Growth {
  if (!before) return { bytes, recent: 0, at: now };
  const kept = before.recent * 2 ** (-(now - before.at) / HALF_LIFE_MS);
  return { bytes, recent: kept + Math.max(0, bytes - before.bytes), at: now };
}

/** When this much could be taken, at a rate that no disk has been seen to reach. */
function nextLookMs(bytes: number): number {
  return Math.min(Math.max(bytes / BYTES_PER_MS, SOONEST_MS), LATEST_MS);
}

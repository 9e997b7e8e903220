// Each snapshot in place leaves a frozen area below the sandbox. Many of them make lookups slow, take a mount each, and at about two
// hundred the kernel takes no more; and what was deleted in them since still counts against the sandbox's size. So the whole chain is
// merged into one area when it gets long, or when it holds most of the size. The areas that it was stay for as long as images refer to them.

import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { asError, type Logger } from "@skerry/base";
import { type DiskAreas, mergedBytes, mergeUppers, newAreaId } from "@skerry/layers";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** Merging copies what the chain holds; this often, and never while the sandbox stands still. */
const LONGEST = 48;
/** Of a disk's size that a chain may hold before it is looked for what was deleted in it. */
const MOST_HELD = 0.75;
/** A chain that is merged for what was deleted in it has to become this much smaller: what is left is copied. */
const WORTHWHILE = 0.5;
/**
 * After a merge that failed, it is tried again when so many areas more lie on it. After one that would not have been worthwhile, with the
 * next one, then after two more, four more, and so on up to as many: looking costs time, but what was deleted shall be found soon.
 */
const MORE = 16;
const KNOWN = 1_000;
const MIB = 2 ** 20;
/** Of a merged area's own, for what a file system keeps beside the files. */
const ROOM = { share: 1.25, mb: 64 };
/** As many as there are in a file system of an area for each MiB. */
const INODES_PER_MIB = 128;

interface Chain extends Pick<SandboxRecord, "frozenAreas" | "size"> {
  /** Whose it is: the lowest areas may be those of many, who were made from one image. */
  readonly identity: { readonly sandboxId: string };
}

interface Wait {
  /** The length at which merging is tried again. */
  readonly at: number;
  readonly more: number;
}

export class AreaChain {
  readonly #areas: DiskAreas;
  readonly #logger: Logger;
  /** By sandbox. Those that were added last are last. */
  readonly #waits = new Map<string, Wait>();

  constructor(areas: DiskAreas, logger: Logger) {
    this.#areas = areas;
    this.#logger = logger;
  }

  /**
   * Areas, lowest first, that mean the same: the given ones, or one that nobody refers to yet.
   * Failure policy: a chain that can't be merged (no room on the disk, say) goes on growing, and the log says why.
   */
  async shortened({ frozenAreas, size, identity: { sandboxId } }: Chain): Promise<readonly string[]> {
    if (frozenAreas.length < 2 || frozenAreas.length < (this.#waits.get(sandboxId)?.at ?? 0)) return frozenAreas;
    for (const id of frozenAreas) await this.#areas.open(id, { readOnly: true });
    const heldBytes = this.#areas.ownBytes(frozenAreas);
    const isFull = size.diskSizeMb > 0 && heldBytes > size.diskSizeMb * MIB * MOST_HELD;
    if (frozenAreas.length < LONGEST && !isFull) return frozenAreas;
    const startedAt = performance.now();
    const merged = newAreaId();
    let isMerged = false;
    let more = Math.min((this.#waits.get(sandboxId)?.more ?? 0.5) * 2, MORE);
    try {
      const mostBytes = frozenAreas.length < LONGEST ? heldBytes * WORTHWHILE : Number.POSITIVE_INFINITY;
      isMerged = await this.#merge(frozenAreas, { merged, heldBytes, mostBytes });
    } catch (error) {
      this.#logger.error({ areas: frozenAreas.length, err: asError(error) }, "frozen areas could not be merged");
      more = MORE;
    }
    if (!isMerged) {
      this.#wait(sandboxId, { at: frozenAreas.length + more, more });
      await this.#areas.destroy(merged);
      return frozenAreas;
    }
    this.#waits.delete(sandboxId);
    const facts = { areas: frozenAreas.length, merged, before_bytes: heldBytes, after_bytes: this.#areas.ownBytes([merged]) };
    this.#logger.info({ ...facts, duration_ms: Math.round(performance.now() - startedAt) }, "frozen areas merged");
    return [merged];
  }

  /** False: what would have to be copied is more than `mostBytes`. */
  async #merge(
    frozenAreas: readonly string[],
    { merged, heldBytes, mostBytes }: { merged: string; heldBytes: number; mostBytes: number },
  ): Promise<boolean> {
    const uppers = frozenAreas.map((id) => this.#areas.paths(id).upper);
    // Plain trees have no size of their own, and so neither has what becomes of them.
    let sizeMb = 0;
    for (const [at, id] of frozenAreas.entries()) {
      if ((await this.#areas.hostBytes(id)) === undefined) continue;
      const { files, ffree } = statfsSync(uppers[at] ?? "");
      sizeMb += ((files - ffree) / INODES_PER_MIB) * ROOM.share;
    }
    if (sizeMb > 0) sizeMb = ROOM.mb + Math.ceil(Math.max(sizeMb, (heldBytes / MIB) * ROOM.share));
    const { upper } = await this.#areas.create(merged, { sizeMb, ownerId: 0, isOnlyOne: true });
    const leftBytes = await mergedBytes(uppers, dirname(upper));
    if (leftBytes > mostBytes) return false;
    await this.#areas.assertRoom({ neededBytes: leftBytes });
    await mergeUppers(uppers, upper);
    // Before those go that it takes the place of.
    await this.#areas.sync(merged);
    return true;
  }

  #wait(sandboxId: string, wait: Wait): void {
    this.#waits.delete(sandboxId);
    this.#waits.set(sandboxId, wait);
    const [oldest] = this.#waits.keys();
    if (this.#waits.size > KNOWN && oldest !== undefined) this.#waits.delete(oldest);
  }
}

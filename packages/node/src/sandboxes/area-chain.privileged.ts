// Each snapshot in place leaves a frozen area below the sandbox. Many of them make lookups slow, take a mount each, and at about two
// hundred the kernel takes no more: so the whole chain is merged into one area when it gets long. The areas that it was stay for as
// long as images refer to them.

import { statfsSync } from "node:fs";
import { asError, type Logger } from "@skerry/base";
import { type DiskAreas, mergeUppers, newAreaId } from "@skerry/layers";

/** Merging copies what the chain holds; this often, and never while the sandbox stands still. */
const LONGEST = 48;
const MIB = 2 ** 20;
/** Of a merged area's own, for what a file system keeps beside the files. */
const ROOM = { share: 1.25, mb: 64 };

export class AreaChain {
  readonly #areas: DiskAreas;
  readonly #logger: Logger;

  constructor(areas: DiskAreas, logger: Logger) {
    this.#areas = areas;
    this.#logger = logger;
  }

  /**
   * Areas, lowest first, that mean the same: the given ones, or one that nobody refers to yet.
   * Failure policy: a chain that can't be merged (no room on the disk, say) goes on growing, and the log says why.
   */
  async shortened(frozenAreas: readonly string[]): Promise<readonly string[]> {
    if (frozenAreas.length < LONGEST) return frozenAreas;
    const startedAt = performance.now();
    const merged = newAreaId();
    try {
      await this.#merge(frozenAreas, merged);
      this.#logger.info(
        { areas: frozenAreas.length, merged, duration_ms: Math.round(performance.now() - startedAt) },
        "frozen areas merged",
      );
      return [merged];
    } catch (error) {
      this.#logger.error({ areas: frozenAreas.length, err: asError(error) }, "frozen areas could not be merged");
      await this.#areas.destroy(merged);
      return frozenAreas;
    }
  }

  async #merge(frozenAreas: readonly string[], merged: string): Promise<void> {
    const uppers: string[] = [];
    let sizeMb = ROOM.mb;
    let isLimited = false;
    for (const id of frozenAreas) {
      const { upper } = await this.#areas.open(id, { readOnly: true });
      uppers.push(upper);
      if ((await this.#areas.hostBytes(id)) === undefined) continue;
      isLimited = true;
      const { blocks, bfree, bsize } = statfsSync(upper);
      sizeMb += Math.ceil((((blocks - bfree) * bsize) / MIB) * ROOM.share);
    }
    // Plain trees have no size of their own, and so neither has what becomes of them.
    const { upper } = await this.#areas.create(merged, { sizeMb: isLimited ? sizeMb : 0, ownerId: 0 });
    await mergeUppers(uppers, upper);
  }
}

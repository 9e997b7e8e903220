// Walks through trees that guests made: deeper than the longest path, with names that are not text, and with any number of entries. Each
// directory is opened from the one above or below it. The walk pauses regularly, because other work uses this thread, too.
// Preconditions everywhere: nothing changes the trees at the same time.

import { closeSync, constants, type Dirent, openSync, readdirSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const WORK_MS = 4;
const REST_MS = 4;

/** An open directory of a tree. It takes one descriptor at any depth. */
export class Place {
  #fd: number;

  constructor(root: string) {
    this.#fd = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  /** A short path of an entry of the directory; "." is the directory itself. Valid until the place changes. */
  path(name: Uint8Array | "." | ".."): Buffer {
    return Buffer.concat([Buffer.from(`/proc/self/fd/${this.#fd}/`), typeof name === "string" ? Buffer.from(name) : name]);
  }

  entries(): Dirent<Buffer>[] {
    return readdirSync(this.path("."), { withFileTypes: true, encoding: "buffer" });
  }

  go(to: Uint8Array | ".."): void {
    const fd = openSync(this.path(to), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    closeSync(this.#fd);
    this.#fd = fd;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Pauses for REST_MS after each WORK_MS of work. */
export class Pace {
  #since = performance.now();

  async keep(): Promise<void> {
    if (performance.now() - this.#since < WORK_MS) return;
    await setTimeout(REST_MS);
    this.#since = performance.now();
  }
}

export interface Visitor {
  /** Returns the names of the directories to enter. `places` are the same directory of each tree; `above` is the length of its path from the root. */
  enter(places: readonly Place[], about: { pace: Pace; above: number }): Promise<Buffer[]>;
  leave?(places: readonly Place[]): void;
}

/** Walks through several trees at once, as far as they have the same directories. */
export async function walkTrees(roots: readonly string[], visitor: Visitor): Promise<void> {
  const pace = new Pace();
  const places: Place[] = [];
  try {
    for (const root of roots) places.push(new Place(root));
    const names: Buffer[] = [];
    const pending = [await visitor.enter(places, { pace, above: 0 })];
    let above = 0;
    for (let level = pending.at(-1); level !== undefined; level = pending.at(-1)) {
      const name = level.pop();
      if (name === undefined) {
        visitor.leave?.(places);
        pending.pop();
        const left = names.pop();
        if (left === undefined) return;
        above -= left.length + 1;
        for (const place of places) place.go("..");
      } else {
        for (const place of places) place.go(name);
        names.push(name);
        above += name.length + 1;
        pending.push(await visitor.enter(places, { pace, above }));
      }
      await pace.keep();
    }
  } finally {
    for (const place of places) place.close();
  }
}

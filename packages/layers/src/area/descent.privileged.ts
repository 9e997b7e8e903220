// Trees that guests made: deeper than any path may be long, with names that are no text, and with any number of entries. So they are gone
// through folder by folder, each opened from the one above or below it, and with rests in between: others use this thread, too.
// Preconditions everywhere: nobody changes the trees meanwhile.

import { closeSync, constants, type Dirent, openSync, readdirSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const WORK_MS = 4;
const REST_MS = 4;

/** A folder of a tree, open. One descriptor, however deep it is. */
export class Place {
  #fd: number;

  constructor(root: string) {
    this.#fd = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  /** A path of what is in the folder, as short as any; "." is the folder itself. Good until the place changes. */
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

/** Rests now and then. */
export class Pace {
  #since = performance.now();

  async keep(): Promise<void> {
    if (performance.now() - this.#since < WORK_MS) return;
    await setTimeout(REST_MS);
    this.#since = performance.now();
  }
}

export interface Visitor {
  /** Answers which of its folders to go into. `places` are the same folder of each tree; `above` is the length of its path from the root. */
  enter(places: readonly Place[], about: { pace: Pace; above: number }): Promise<Buffer[]>;
  leave?(places: readonly Place[]): void;
}

/** Goes through several trees at once, as far as they have the same folders. */
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

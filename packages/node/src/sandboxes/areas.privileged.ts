// Areas: what sandboxes write. One belongs to the container that writes to it; once an image refers to it, it is frozen and
// lies below others as a layer. Nothing counts references: who refers to what is in the journal and in the images.

import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import type { NodePaths } from "../paths.ts";
import { moveToTrash } from "../trash.privileged.ts";

export interface NewArea {
  readonly sizeMb: number;
  /** Host id of the root of the user namespace that writes to it; 0 without one. */
  readonly ownerId: number;
}

export class Areas {
  readonly #paths: NodePaths;
  constructor(paths: NodePaths) {
    this.#paths = paths;
  }

  newId(): string {
    return randomBytes(12).toString("hex");
  }

  async create(id: string, { ownerId }: NewArea): Promise<void> {
    const { dir, upper, work } = this.#paths.area(id);
    mkdirSync(dir, { mode: 0o711 });
    for (const path of [upper, work]) {
      mkdirSync(path, { mode: 0o755 });
      chownSync(path, ownerId, ownerId);
      chmodSync(path, 0o755);
    }
  }

  /** Makes one usable again that nobody uses now. */
  async open(id: string): Promise<void> {
    if (!existsSync(this.#paths.area(id).upper)) throw new Error(`area ${id} is gone`);
  }

  /** Nobody uses it now; it stays as it is. */
  async close(_id: string): Promise<void> {}

  async destroy(id: string): Promise<void> {
    moveToTrash(this.#paths, this.#paths.area(id).dir);
  }

  /** Every area that there is anything of. */
  list(): string[] {
    return readdirSync(this.#paths.areas);
  }
}

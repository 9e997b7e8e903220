// Locks of a layer store, which several processes use at once: the node, and set-up. The kernel holds them and releases them
// when their process ends.

import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { lockFile } from "@skerry/base/linux";

/** How often a waiting process tries again. */
const LOOK_MS = 20;

export class StoreLocks {
  readonly dir: string;

  constructor(root: string) {
    this.dir = join(root, "locks");
  }

  async open(): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 });
  }

  /** The lock of a layer. Layers whose names begin alike share one, so the number of lock files is bounded. */
  layer(shortName: string): Promise<AsyncDisposable> {
    return this.#lock(shortName.slice(0, 2));
  }

  /** Held while a staging directory is created, and while abandoned ones are removed. */
  staging(): Promise<AsyncDisposable> {
    return this.#lock("staging");
  }

  /** Held while the trash is emptied: programs that delete one tree together get in each other's way. */
  trash(): Promise<AsyncDisposable> {
    return this.#lock("trash");
  }

  async #lock(name: string): Promise<AsyncDisposable> {
    const file = await open(join(this.dir, name), "a", 0o600);
    try {
      while (!lockFile(file.fd)) await sleep(LOOK_MS);
    } catch (error) {
      await file.close();
      throw error;
    }
    return { [Symbol.asyncDispose]: () => file.close() };
  }
}

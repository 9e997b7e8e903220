// Staging directories: `staging/<id>` is a tree that a process is filling, and `locks/staging-<id>` is a file that the process keeps
// locked for as long as it lives. A directory whose lock is free was abandoned.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { errnoOf, mountsBelow } from "@skerry/base";
import { lockFile, unmount } from "@skerry/base/linux";
import type { StoreLocks } from "./store-locks.privileged.ts";

const LOCK_PREFIX = "staging-";

export class Staging {
  readonly #dir: string;
  readonly #locks: StoreLocks;
  /** Lock files of this process, by the path of the tree. */
  readonly #held = new Map<string, FileHandle>();

  constructor(root: string, locks: StoreLocks) {
    this.#dir = join(root, "staging");
    this.#locks = locks;
  }

  async open(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
  }

  async create(): Promise<string> {
    const path = join(this.#dir, randomBytes(8).toString("hex"));
    await using _lock = await this.#locks.staging();
    const file = await open(this.#lockPath(path), "wx", 0o600);
    lockFile(file.fd);
    this.#held.set(path, file);
    await mkdir(path, { mode: 0o755 });
    return path;
  }

  /** For a directory that has moved away or was removed. */
  async forget(path: string): Promise<void> {
    await rm(this.#lockPath(path), { force: true });
    await this.#held.get(path)?.close();
    this.#held.delete(path);
  }

  /** Moves the trees of processes that have ended to `trash`. */
  async sweep(trash: string): Promise<void> {
    await using _lock = await this.#locks.staging();
    const locks = (await readdir(this.#locks.dir)).filter((name) => name.startsWith(LOCK_PREFIX));
    const names = new Set([...(await readdir(this.#dir)), ...locks.map((name) => name.slice(LOCK_PREFIX.length))]);
    for (const name of names) {
      const path = join(this.#dir, name);
      if (this.#held.has(path)) {
        if (!existsSync(path)) await this.forget(path);
        continue;
      }
      await using file = await open(this.#lockPath(path), "a", 0o600);
      if (!lockFile(file.fd)) continue;
      // Of a merge of layers. A mount would keep the files from being deleted.
      for (const mount of mountsBelow(path).toReversed()) unmount(mount, { detach: true });
      await moveInto(path, trash);
      await rm(this.#lockPath(path), { force: true });
    }
  }

  #lockPath(path: string): string {
    return join(this.#locks.dir, `${LOCK_PREFIX}${basename(path)}`);
  }
}

/** Renames `from` to a new name in the directory `to`. Nothing happens when `from` does not exist. */
export async function moveInto(from: string, to: string): Promise<void> {
  try {
    await rename(from, join(to, randomBytes(8).toString("hex")));
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

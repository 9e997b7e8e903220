// Disk space that is reserved for a full disk: a file with allocated blocks. On a full disk the node deletes the file. Records, the database
// and the log then have the space to pause and kill the sandboxes that fill the disk. The node allocates the file again when the disk has
// enough space.

import { closeSync, openSync, renameSync, statSync, unlinkSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import { allocateInBackground } from "@skerry/base/linux";

export class DiskReserve {
  readonly #file: string;
  readonly bytes: number;
  #making: Promise<void> | undefined;

  constructor(file: string, bytes: number) {
    this.#file = file;
    this.bytes = bytes;
  }

  get isThere(): boolean {
    return statSync(this.#file, { throwIfNoEntry: false }) !== undefined;
  }

  /** Allocates the reserve, unless it exists or is being allocated. Throws if the disk lacks the space, and then leaves nothing behind. */
  make(): Promise<void> {
    if (this.isThere) return Promise.resolve();
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  /** Deletes the reserve, which needs no disk space. False if there was none. */
  release(): boolean {
    return removeIfThere(this.#file);
  }

  async #make(): Promise<void> {
    const staged = `${this.#file}.new`;
    try {
      const fd = openSync(staged, "w", 0o600);
      try {
        await allocateInBackground(fd, { bytes: this.bytes, subject: staged });
      } finally {
        closeSync(fd);
      }
      renameSync(staged, this.#file);
    } catch (error) {
      removeIfThere(staged);
      throw error;
    }
  }
}

function removeIfThere(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}

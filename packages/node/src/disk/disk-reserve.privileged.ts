// Room that is given up when there is no other: a file of real blocks. On a full disk its removal lets records, the database and the
// log go on, so that what fills the disk can be paused and killed. It is made again when there is plenty of room.

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

  /** Does nothing when it is there, whole or being made. Throws when there is no room for it; nothing of it is left then. */
  make(): Promise<void> {
    if (this.isThere) return Promise.resolve();
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  /** Takes no room. False when it was given up before. */
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

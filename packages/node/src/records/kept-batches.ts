// What a node has for the control plane, in batches that are kept until one of its processes has stored them. At the end of the process, what is
// left goes into a file, which the next start delivers. A crash loses what nobody had fetched: the last seconds.

import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { errnoOf } from "@skerry/base";

export interface BatchId {
  /** Another one for each process of the node. */
  readonly source: string;
  /** Begins with 1 and rises. */
  readonly number: number;
}

export class KeptBatches<Content extends object> {
  readonly #source = randomUUID();
  readonly #file: string;
  /** Takes what there is, up to the size of a batch; undefined when there is nothing. */
  readonly #take: () => Content | undefined;
  #number = 0;
  #batches: (BatchId & Content)[];

  constructor(file: string, take: () => Content | undefined) {
    this.#file = file;
    this.#take = take;
    this.#batches = readBatches(file);
  }

  /** The oldest batch that is not stored; undefined when there is nothing new. Forgets those up to `stored`. */
  read(stored: BatchId): (BatchId & Content) | undefined {
    const last = this.#batches.findIndex(({ source, number }) => source === stored.source && number === stored.number);
    if (last >= 0) {
      this.#batches = this.#batches.slice(last + 1);
      if (this.#batches.every(({ source }) => source === this.#source)) rmSync(this.#file, { force: true });
    }
    if (this.#batches.length === 0) this.#seal();
    return this.#batches[0];
  }

  /** Writes what is left into the file. */
  close(): void {
    while (this.#seal());
    if (this.#batches.length === 0) return;
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.#batches), { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
  }

  /** Makes a batch of what there is. Returns whether there was something. */
  #seal(): boolean {
    const content = this.#take();
    if (!content) return false;
    this.#number += 1;
    this.#batches.push({ source: this.#source, number: this.#number, ...content });
    return true;
  }
}

/** What a former process left. A file that it could not finish is no loss of anything else. */
function readBatches<Batch>(file: string): Batch[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Batch[];
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || error instanceof SyntaxError) return [];
    throw error;
  }
}

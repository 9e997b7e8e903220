// What sandboxes reached and tried to reach, until an API has stored it. Lines come with the address of a network slot; the book knows whose
// it is. It hands out batches, and keeps each one until it is stored. At the end of the process, what is left goes into a file, which the next
// start delivers. A crash loses what no API had fetched: the last seconds.

import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import type { EgressRecord } from "../egress/egress-record.ts";
import { type EgressLine, EgressLines } from "./egress-lines.ts";

export interface EgressCounts {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  readonly refused: number;
}

export interface EgressBatch {
  readonly source: string;
  readonly number: number;
  readonly lines: readonly (EgressLine & { readonly sandboxId: string })[];
  readonly counts: readonly (EgressCounts & { readonly sandboxId: string })[];
}

/** Bounds an answer, and the transaction that stores it. */
const LINES_AT_ONCE = 1_000;

interface Entry {
  readonly lines: EgressLines;
  counts: EgressCounts;
}

export class EgressBook {
  readonly #source = randomUUID();
  readonly #file: string;
  #number = 0;
  /** The sandboxes at addresses of slots; undefined while nobody has the container yet. */
  readonly #owners = new Map<string, string | undefined>();
  readonly #entries = new Map<string, Entry>();
  #batches: EgressBatch[];

  constructor(file: string) {
    this.#file = file;
    this.#batches = readBatches(file);
  }

  /** A container got the slot with this address. What the address did before belongs to nobody. */
  arrive(address: string, sandboxId: string): void {
    this.#owners.set(address, sandboxId === "" ? undefined : sandboxId);
  }

  /** The container at this address belongs to a sandbox. It stays the owner after its end, until the next `arrive`. */
  own(address: string, sandboxId: string): void {
    if (sandboxId !== "") this.#owners.set(address, sandboxId);
  }

  /** Adds a line of the sandbox at an address, and counts it. What containers without a sandbox do is dropped. */
  record(address: string, record: EgressRecord, nowMs = Date.now()): void {
    this.add(address, record, nowMs);
    const isAllowed = record.verdict === "allowed";
    this.count(address, { ...NOTHING, connections: Number(isAllowed), refused: Number(!isAllowed) });
  }

  /** Adds a line of what is counted elsewhere. */
  add(address: string, record: EgressRecord, nowMs = Date.now()): void {
    this.#entryAt(address)?.lines.add(record, nowMs);
  }

  /** Adds a number of attempts that have no lines. */
  omit(address: string, verdict: EgressRecord["verdict"], count: number): void {
    this.#entryAt(address)?.lines.omit({ timeMs: Date.now(), verdict, sentBytes: 0, receivedBytes: 0 }, count);
  }

  count(address: string, more: EgressCounts): void {
    const entry = this.#entryAt(address);
    if (!entry) return;
    const { sentBytes, receivedBytes, connections, refused } = entry.counts;
    entry.counts = {
      sentBytes: sentBytes + more.sentBytes,
      receivedBytes: receivedBytes + more.receivedBytes,
      connections: connections + more.connections,
      refused: refused + more.refused,
    };
  }

  /** The oldest batch that is not stored; undefined when there is nothing new. Forgets those up to `stored`. */
  read(stored: { readonly source: string; readonly number: number }): EgressBatch | undefined {
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

  #entryAt(address: string): Entry | undefined {
    const sandboxId = this.#owners.get(address);
    if (sandboxId === undefined) return undefined;
    const entry = this.#entries.get(sandboxId) ?? { lines: new EgressLines(Date.now()), counts: NOTHING };
    this.#entries.set(sandboxId, entry);
    return entry;
  }

  /** Makes a batch of what there is. Returns whether there was something. */
  #seal(): boolean {
    const lines: (EgressLine & { sandboxId: string })[] = [];
    const counts: (EgressCounts & { sandboxId: string })[] = [];
    for (const [sandboxId, entry] of [...this.#entries]) {
      const room = LINES_AT_ONCE - lines.length;
      if (room <= 0) break;
      lines.push(...entry.lines.take(room).map((line) => ({ ...line, sandboxId })));
      if (Object.values(entry.counts).some((count) => count > 0)) counts.push({ sandboxId, ...entry.counts });
      entry.counts = NOTHING;
      // To the end, so that every sandbox has its turn. The rate of its lines is kept while they are its own.
      this.#entries.delete(sandboxId);
      if (!entry.lines.isSpare(Date.now())) this.#entries.set(sandboxId, entry);
    }
    if (lines.length === 0 && counts.length === 0) return false;
    this.#number += 1;
    this.#batches.push({ source: this.#source, number: this.#number, lines, counts });
    return true;
  }
}

const NOTHING: EgressCounts = { sentBytes: 0, receivedBytes: 0, connections: 0, refused: 0 };

/** What a former process left. A file that it could not finish is no loss of anything else. */
function readBatches(file: string): EgressBatch[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as EgressBatch[];
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || error instanceof SyntaxError) return [];
    throw error;
  }
}

// What sandboxes reached and tried to reach, until an API has stored it. Lines come with the address of a network slot; the book knows whose
// it is. It hands out batches: see `KeptBatches`.

import type { EgressRecord } from "../egress/egress-record.ts";
import { type BatchId, KeptBatches } from "../records/kept-batches.ts";
import { type EgressLine, EgressLines } from "./egress-lines.ts";

export interface EgressCounts {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  readonly refused: number;
}

export interface EgressContent {
  readonly lines: readonly (EgressLine & { readonly sandboxId: string })[];
  readonly counts: readonly (EgressCounts & { readonly sandboxId: string })[];
}

export type EgressBatch = BatchId & EgressContent;

/** Bounds an answer, and the transaction that stores it. */
const LINES_AT_ONCE = 1_000;

interface Entry {
  readonly lines: EgressLines;
  counts: EgressCounts;
}

export class EgressBook {
  /** The sandboxes at addresses of slots; undefined while nobody has the container yet. */
  readonly #owners = new Map<string, string | undefined>();
  readonly #entries = new Map<string, Entry>();
  readonly #batches: KeptBatches<EgressContent>;

  constructor(file: string) {
    this.#batches = new KeptBatches(file, () => this.#take());
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
  read(stored: BatchId): EgressBatch | undefined {
    return this.#batches.read(stored);
  }

  /** Writes what is left into the file. */
  close(): void {
    this.#batches.close();
  }

  #entryAt(address: string): Entry | undefined {
    const sandboxId = this.#owners.get(address);
    if (sandboxId === undefined) return undefined;
    const entry = this.#entries.get(sandboxId) ?? { lines: new EgressLines(Date.now()), counts: NOTHING };
    this.#entries.set(sandboxId, entry);
    return entry;
  }

  #take(): EgressContent | undefined {
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
    return lines.length === 0 && counts.length === 0 ? undefined : { lines, counts };
  }
}

const NOTHING: EgressCounts = { sentBytes: 0, receivedBytes: 0, connections: 0, refused: 0 };

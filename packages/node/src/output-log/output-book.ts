// What processes of sandboxes wrote, until an API has stored it. What is kept of each sandbox is bounded, so a sandbox that writes more than
// that between two calls of an API loses its own lines, and one line says how many.

import { type BatchId, KeptBatches } from "../records/kept-batches.ts";

export interface OutputLine {
  /** Of the agent: another one when its numbers begin again. */
  readonly source: string;
  /** Rises within the source. */
  readonly number: number;
  readonly timeMs: number;
  readonly pid: number;
  /** "agent": what the node and the agent did to the sandbox. */
  readonly stream: "stdout" | "stderr" | "pty" | "agent";
  readonly text: string;
  /** Lines before this one that are missing. */
  readonly omitted: number;
}

export interface OutputContent {
  readonly lines: readonly (OutputLine & { readonly sandboxId: string })[];
}

export type OutputBatch = BatchId & OutputContent;

/** Of one sandbox, until a batch takes them. */
const MAX_WAITING_LINES = 1_000;
const MAX_WAITING_CHARACTERS = 512 * 1024;
/** Bounds an answer, and the transaction that stores it. */
const LINES_AT_ONCE = 2_000;
const CHARACTERS_AT_ONCE = 2 * 1024 * 1024;

interface Entry {
  lines: OutputLine[];
  characters: number;
  omitted: number;
}

export class OutputBook {
  readonly #entries = new Map<string, Entry>();
  readonly #batches: KeptBatches<OutputContent>;

  constructor(file: string) {
    this.#batches = new KeptBatches(file, () => this.#take());
  }

  add(sandboxId: string, line: OutputLine): void {
    const entry = this.#entries.get(sandboxId) ?? { lines: [], characters: 0, omitted: 0 };
    this.#entries.set(sandboxId, entry);
    entry.omitted += line.omitted;
    if (entry.lines.length >= MAX_WAITING_LINES || entry.characters + line.text.length > MAX_WAITING_CHARACTERS) {
      entry.omitted += 1;
      return;
    }
    entry.lines.push({ ...line, omitted: entry.omitted });
    entry.characters += line.text.length;
    entry.omitted = 0;
  }

  read(stored: BatchId): OutputBatch | undefined {
    return this.#batches.read(stored);
  }

  close(): void {
    this.#batches.close();
  }

  #take(): OutputContent | undefined {
    const lines: (OutputLine & { sandboxId: string })[] = [];
    let characters = 0;
    for (const [sandboxId, entry] of [...this.#entries]) {
      if (lines.length >= LINES_AT_ONCE || characters >= CHARACTERS_AT_ONCE) break;
      lines.push(...entry.lines.map((line) => ({ ...line, sandboxId })));
      characters += entry.characters;
      this.#entries.delete(sandboxId);
      // Told with the next line that there is room for.
      if (entry.omitted > 0) this.#entries.set(sandboxId, { lines: [], characters: 0, omitted: entry.omitted });
    }
    return lines.length === 0 ? undefined : { lines };
  }
}

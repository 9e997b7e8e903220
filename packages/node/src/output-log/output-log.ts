// The logged output of this node's sandboxes. It follows the sandboxes whose callers asked for it, from their start to their end, and opens a
// connection anew that broke off, as at a pause that failed or a snapshot.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger } from "@skerry/base";
import type { BatchId } from "../records/kept-batches.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { followOutput, type Place } from "./follow-output.ts";
import { type OutputBatch, OutputBook } from "./output-book.ts";

/** Pause before a connection is opened anew. */
const RETRY_MS = 1_000;

export interface Followable {
  readonly record: Pick<SandboxRecord, "identity" | "options" | "sandboxId" | "slot" | "state">;
  /** Aborted at its end. */
  readonly ended: AbortController;
}

export class OutputLog {
  readonly #book: OutputBook;
  readonly #logger: Logger;
  readonly #followed = new Set<Followable>();
  readonly #closed = new AbortController();
  /** Of the lines that it adds itself. */
  readonly #source = randomUUID();
  #told = 0;

  constructor({ file, logger }: { readonly file: string; readonly logger: Logger }) {
    this.#book = new OutputBook(file);
    this.#logger = logger;
  }

  /** Follows a running sandbox whose caller asked for it, unless it is followed already. */
  follow(live: Followable): void {
    const { sandboxId, options, state } = live.record;
    if (sandboxId === "" || state !== "running" || !options.logOutput) return;
    if (this.#followed.has(live) || this.#closed.signal.aborted) return;
    this.#followed.add(live);
    void this.#follow(live).finally(() => this.#followed.delete(live));
  }

  async #follow(live: Followable): Promise<void> {
    const signal = AbortSignal.any([live.ended.signal, this.#closed.signal]);
    let place: Place = { source: "", number: 0 };
    while (!signal.aborted) {
      const { identity, sandboxId, slot } = live.record;
      try {
        await followOutput(
          { address: slot.addresses.guest, accessToken: identity.accessToken },
          {
            place,
            signal,
            onLine: (line) => {
              place = line;
              this.#book.add(sandboxId, line);
            },
          },
        );
      } catch (error) {
        if (!signal.aborted) this.#logger.debug({ sandbox_id: sandboxId, err: asError(error) }, "following a sandbox's output failed");
      }
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Adds a line about a sandbox to its log, whether or not its caller asked for output. */
  tell(sandboxId: string, text: string): void {
    if (sandboxId === "") return;
    this.#told += 1;
    const line = { source: this.#source, number: this.#told, timeMs: Date.now(), pid: 0, stream: "agent", text, omitted: 0 } as const;
    this.#book.add(sandboxId, line);
  }

  read(stored: BatchId): OutputBatch | undefined {
    return this.#book.read(stored);
  }

  /** Failure policy: on a full disk the last seconds of the logs are lost. */
  close(): void {
    this.#closed.abort();
    try {
      this.#book.close();
    } catch (error) {
      this.#logger.warn({ err: asError(error) }, "the last lines of processes could not be kept");
    }
  }
}

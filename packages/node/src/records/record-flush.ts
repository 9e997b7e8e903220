// Flushes the records of sandboxes that have started, one after the other and in the background. After a loss of power, the node finds the
// disks of sandboxes by these records.

import { asError, type Logger } from "@skerry/base";
import type { NodePaths } from "../paths.ts";
import { syncRecordFile } from "./record-file.privileged.ts";

export class RecordFlush {
  readonly #paths: NodePaths;
  readonly #logger: Logger;
  readonly #waiting = new Set<string>();
  #working: Promise<void> | undefined;

  constructor(paths: NodePaths, logger: Logger) {
    this.#paths = paths;
    this.#logger = logger;
  }

  add(containerId: string): void {
    this.#waiting.add(containerId);
    this.#working ??= this.#work();
  }

  /** Resolves when no record waits for its flush. */
  async done(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    for (const containerId of this.#waiting) {
      this.#waiting.delete(containerId);
      try {
        await syncRecordFile(this.#paths.container(containerId).record);
      } catch (error) {
        this.#logger.warn({ container_id: containerId, err: asError(error) }, "the record of a sandbox may not survive a power cut");
      }
    }
    this.#working = undefined;
  }
}

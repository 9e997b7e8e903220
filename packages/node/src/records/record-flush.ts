// Records of sandboxes that have come to run are forced to disk a moment later, one after the other: after a power cut their disks are found
// by them. No caller waits for it.

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

  /** Resolves when none waits. */
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

// Watches for containers that have ended by themselves or were not released, and keeps or releases them. Operations on a sandbox take turns.

import { asError, type KeyedLock, type Logger, PlatformError } from "@skerry/base";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import { isSameProcess } from "../containers/process-identity.ts";
import type { Keeper } from "./keeper.privileged.ts";

const INTERVAL_MS = 500;
const RETRY_MS = 5_000;

export interface EndWatchOptions {
  readonly containers: Containers;
  readonly keeper: Keeper;
  readonly lock: KeyedLock;
  readonly logger: Logger;
}

export class EndWatch {
  readonly #options: EndWatchOptions;
  /** Containers that are being released, or whose release failed a moment ago. */
  readonly #releasing = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: EndWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Keeps the disks of sandboxes that ended because of a crash of the runtime, or because the sandbox or the host ran out of memory.
   * Releases the remains of failed kills, and containers that belong to no sandbox.
   */
  #look(): void {
    for (const live of this.#options.containers.all()) {
      const { containerId, sandboxId, state } = live.record;
      if (this.#releasing.has(containerId) || !this.#needsRelease(live)) continue;
      this.#options.logger.warn({ sandbox_id: sandboxId, container_id: containerId, state }, "sandbox ended by itself or was not released");
      this.#releasing.add(containerId);
      this.#options.lock
        .run(sandboxId === "" ? containerId : sandboxId, async () => {
          // The container may have been released during the wait for the turn.
          if (this.#options.containers.get(containerId) === live && this.#needsRelease(live)) await this.#release(live);
        })
        .then(
          () => this.#releasing.delete(containerId),
          (error: unknown) => {
            this.#options.logger.error({ sandbox_id: sandboxId, err: asError(error) }, "releasing a sandbox failed; will be tried again");
            setTimeout(() => this.#releasing.delete(containerId), RETRY_MS).unref();
          },
        );
    }
  }

  async #release(live: LiveContainer): Promise<void> {
    const { containers, keeper } = this.#options;
    const { sandboxId, state } = live.record;
    if (sandboxId === "" || state === "killing") return containers.giveBack(live.record);
    const reason = containers.unaskedEndOf(live);
    try {
      await keeper.keep(live, { reason });
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== "not_kept") throw error;
      containers.unaskedEnds.add(sandboxId, reason);
      await containers.giveBack(live.record);
    }
  }

  #needsRelease({ record, ending, fatal, build }: LiveContainer): boolean {
    if (ending || build?.isCommitting) return false;
    try {
      if (record.state === "killing") return true;
      if ((record.state === "running" || build) && fatal !== undefined) return true;
      return (record.state === "running" || record.state === "pooled") && !isSameProcess(record.process);
    } catch (error) {
      this.#options.logger.error({ sandbox_id: record.sandboxId, err: asError(error) }, "the state of a sandbox could not be read");
      return false;
    }
  }
}

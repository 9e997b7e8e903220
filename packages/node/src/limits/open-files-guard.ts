// Keeps gVisor's kernel from running out of descriptors, at which it ends, and the sandbox with it. One process of the guest is
// stopped by its own limit before that; against many together, those with the most open files are ended.

import { asError, type Logger } from "@skerry/base";
import { countOpenFiles, openFilesLimit } from "@skerry/runtime";
import { relieve } from "../agent/relieve.ts";
import type { GuardedSandbox } from "./guarded-sandbox.ts";
import { withUrgency } from "./urgency.ts";

/** Of what gVisor's kernel may have open: above that, somebody is ended. One process at its own limit makes it a third. */
const FULL_SHARE = 0.4;
/** Faster than any guest has been seen to open files. */
const FILES_PER_MS = 50;
const SOONEST_MS = 10;
const LATEST_MS = 500;
/** How many are to be left of what is too many: the others go on opening files while the first ones end. */
const AIM_SHARE = 0.5;
/** How long what was ended may take to let go. */
const SETTLE_MS = 100;
/** Of what was ended at once: a guest must not fill the log. */
const MAX_NAMED = 20;

interface Watched {
  readonly sandbox: GuardedSandbox;
  /** At that many, somebody is ended. */
  readonly most: number;
}

export class OpenFilesGuard {
  readonly #logger: Logger;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  watch(sandbox: GuardedSandbox): void {
    if (sandbox.runtime !== "gvisor") return;
    try {
      this.#lookIn({ sandbox, most: openFilesLimit(sandbox.pid) * FULL_SHARE }, 0);
    } catch {
      // It ended meanwhile.
    }
  }

  unwatch(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }

  close(): void {
    for (const key of [...this.#timers.keys()]) this.unwatch(key);
  }

  #lookIn(watched: Watched, ms: number): void {
    const { key } = watched.sandbox;
    clearTimeout(this.#timers.get(key));
    const timer = setTimeout(() => void this.#look(watched), ms);
    timer.unref();
    this.#timers.set(key, timer);
  }

  /** Never throws. */
  async #look(watched: Watched): Promise<void> {
    const { sandbox, most } = watched;
    let nextMs = LATEST_MS;
    try {
      const count = countOpenFiles(sandbox.pid);
      // It has ended, or this kernel does not count: then each process's own limit stands alone.
      if (count === undefined) return this.unwatch(sandbox.key);
      if (count < most) nextMs = Math.min(Math.max((most - count) / FILES_PER_MS, SOONEST_MS), LATEST_MS);
      else nextMs = await this.#relieve(watched, count);
    } catch (error) {
      const { sandboxId } = sandbox.identity();
      this.#logger.warn({ sandbox_id: sandboxId, err: asError(error) }, "a sandbox has too many open files, and its agent does not help");
    }
    // Unless it was given up meanwhile.
    if (this.#timers.has(sandbox.key)) this.#lookIn(watched, nextMs);
  }

  async #relieve({ sandbox, most }: Watched, count: number): Promise<number> {
    const { sandboxId, accessToken } = sandbox.identity();
    const relief = { files: Math.ceil(count - most * AIM_SHARE) };
    const killed = await withUrgency(sandbox, this.#logger, () => relieve({ address: sandbox.address, accessToken }, relief));
    if (killed.length === 0) return LATEST_MS;
    const named = killed.slice(0, MAX_NAMED).map(({ pid, name }) => ({ pid, command: name }));
    const facts = { sandbox_id: sandboxId, open_files: count, processes: killed.length, killed: named };
    this.#logger.warn(facts, "processes ended: their sandbox had too many open files");
    return SETTLE_MS;
  }
}

// Prevents gVisor's kernel from running out of file descriptors, which would end the sandbox. The limit of a process stops one process of the
// guest before that. When many processes together open too many files, those with the most open files are killed.

import { asError, type Logger } from "@skerry/base";
import { countOpenFiles, openFilesLimit } from "@skerry/runtime";
import { relieve, shownProcesses } from "../agent/relieve.ts";
import type { GuardDeps, GuardedSandbox } from "./guarded-sandbox.ts";
import { withUrgency } from "./urgency.ts";

/** Share of gVisor's descriptors above which processes are killed. One process at its own limit uses a third. */
const FULL_SHARE = 0.4;
/** Upper bound of the rate at which a guest opens files. It determines how long the guard may wait. */
const FILES_PER_MS = 50;
const SOONEST_MS = 10;
const LATEST_MS = 500;
/** Share of the descriptors that is the aim of a kill. Other processes continue to open files meanwhile. */
const AIM_SHARE = 0.5;
/** How long killed processes may take to close their files. */
const SETTLE_MS = 100;
/** Names of killed processes in one log entry. A guest must not be able to fill the log. */
const MAX_NAMED = 20;

interface Watched {
  readonly sandbox: GuardedSandbox;
  /** Number of descriptors at which processes are killed. */
  readonly most: number;
}

export class OpenFilesGuard {
  readonly #logger: Logger;
  readonly #tell: GuardDeps["tell"];
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor({ logger, tell }: GuardDeps) {
    this.#logger = logger;
    this.#tell = tell;
  }

  watch(sandbox: GuardedSandbox): void {
    if (sandbox.runtime !== "gvisor") return;
    try {
      this.#lookIn({ sandbox, most: openFilesLimit(sandbox.pid) * FULL_SHARE }, 0);
    } catch {
      // The sandbox has ended.
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
      // The sandbox has ended, or the kernel does not count descriptors: then only the limit of each process applies.
      if (count === undefined) return this.unwatch(sandbox.key);
      if (count < most) nextMs = Math.min(Math.max((most - count) / FILES_PER_MS, SOONEST_MS), LATEST_MS);
      else nextMs = await this.#relieve(watched, count);
    } catch (error) {
      const { sandboxId } = sandbox.identity();
      this.#logger.warn({ sandbox_id: sandboxId, err: asError(error) }, "a sandbox has too many open files, and its agent does not answer");
    }
    // The sandbox may have been unwatched meanwhile.
    if (this.#timers.has(sandbox.key)) this.#lookIn(watched, nextMs);
  }

  async #relieve({ sandbox, most }: Watched, count: number): Promise<number> {
    const { sandboxId, accessToken } = sandbox.identity();
    const relief = { files: Math.ceil(count - most * AIM_SHARE) };
    const killed = await withUrgency(sandbox, this.#logger, () => relieve({ address: sandbox.address, accessToken }, relief));
    if (killed.length === 0) return LATEST_MS;
    const named = killed.slice(0, MAX_NAMED).map(({ pid, name }) => ({ pid, command: name }));
    const facts = { sandbox_id: sandboxId, open_files: count, processes: killed.length, killed: named };
    this.#logger.warn(facts, "processes killed because their sandbox had too many open files");
    this.#tell(sandboxId, `Ended, because the sandbox had too many open files: ${shownProcesses(killed)}`);
    return SETTLE_MS;
  }
}

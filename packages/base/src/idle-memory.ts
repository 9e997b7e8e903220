// Collects garbage while the process is idle, and returns the freed memory to the host. V8 collects only when it needs memory, so an idle
// process never collects: a quarter of an agent's memory is garbage after its start, and half of the platform's after a busy hour.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Idle period before a collection: no work started or finished, and CPU use stayed below QUIET_SHARE. */
const QUIET_MS = 2_500;
/** Share of one CPU below which the process counts as idle. */
const QUIET_SHARE = 0.05;
/**
 * Number of further checks before a collection, and the time between them. A check that runs late means that the process was restored
 * from an image or that the host is busy, so the idle period starts again. Without these checks, all forks of a sandbox would collect at
 * the moment in which they all start.
 */
const LOOKS = 5;
const LOOK_MS = 100;
/** Delay above which a check counts as late. */
const LATE_MS = 50;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

export interface IdleMemoryOptions {
  /** Minimum growth of the process that justifies a collection, which costs at least 30 ms of CPU time. */
  readonly worthBytes: number;
  /** Returns memory that the C library has freed and kept. This is cheap. */
  readonly trim?: () => void;
}

export class IdleMemory {
  readonly #options: IdleMemoryOptions;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #touchedAt = 0;
  #quietLooks = 0;
  #processor = { at: 0, ms: 0 };
  #collect: Collect | undefined;
  #leftBytes = 0;

  constructor(options: IdleMemoryOptions) {
    this.#options = options;
  }

  /** Call when work starts and when it ends. */
  touch(): void {
    this.#touchedAt = performance.now();
    this.#quietLooks = 0;
    if (!this.#timer) this.#lookIn(QUIET_MS);
  }

  #lookIn(ms: number): void {
    this.#dueAt = performance.now() + ms;
    this.#timer = setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    const now = performance.now();
    const isLate = now - this.#dueAt > LATE_MS;
    const restMs = this.#touchedAt + QUIET_MS - now;
    if (this.#worked(now) || (isLate && this.#quietLooks > 0)) {
      this.#quietLooks = 0;
      this.#lookIn(QUIET_MS);
    } else if (restMs > 0) this.#lookIn(restMs);
    else if (this.#quietLooks < LOOKS) {
      this.#quietLooks += 1;
      this.#lookIn(LOOK_MS);
    } else {
      this.#timer = undefined;
      this.#giveBack();
    }
  }

  // Streams, watched directories and relayed ports use the CPU between requests, and a collection would delay them.
  #worked(now: number): boolean {
    const { user, system } = process.cpuUsage();
    const before = this.#processor;
    this.#processor = { at: now, ms: (user + system) / 1000 };
    return this.#processor.ms - before.ms > (now - before.at) * QUIET_SHARE;
  }

  #giveBack(): void {
    const { worthBytes, trim } = this.#options;
    trim?.();
    if (process.memoryUsage.rss() - this.#leftBytes < worthBytes) return;
    this.#collect ??= loadCollect();
    this.#collect({ type: "major", execution: "sync", flavor: "last-resort" });
    trim?.();
    this.#leftBytes = process.memoryUsage.rss();
  }
}

// V8 adds `gc` only to contexts that are created while the flag is set. The main context was created before.
function loadCollect(): Collect {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  return collect;
}

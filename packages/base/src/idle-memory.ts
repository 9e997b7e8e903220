// Gives memory that work has left behind back to the host when there is no work. V8 collects when it needs room, and an idle program
// never does: a quarter of an agent's memory is rubbish after its start alone, and half of the platform's after a busy hour.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** So long has no work begun or ended, and next to nothing was computed. */
const QUIET_MS = 2_500;
const QUIET_SHARE = 0.05;
/**
 * Before it collects it looks again, so often, so soon: a look that comes late comes from an image, or the machine is busy, and the quiet
 * of before does not count. Or else all forks of a sandbox collect at the moment in which all of them start.
 */
const LOOKS = 5;
const LOOK_MS = 100;
const LATE_MS = 50;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

export interface IdleMemoryOptions {
  /** A collection takes 30 ms of a processor and more, and what works next has to ask for memory again: not for less growth than this. */
  readonly worthBytes: number;
  /** Gives back what the C library keeps of freed memory, which costs next to nothing. */
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

  /** Work begins or ends. */
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

  // Streams, watched directories and relayed ports work on between requests: a collection would hold them up.
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

// The function that V8 gives to contexts that are made while the flag is set; ours was made before.
function loadCollect(): Collect {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  return collect;
}

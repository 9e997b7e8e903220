// Gives memory that work has left behind back to the host when there is no work. V8 collects when it needs room, and an idle agent
// never does; after its start alone a quarter of its memory is rubbish, in every sandbox of the machine.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isLibcLoaded, libc } from "./native/libc.ts";

/** So long has no request begun or ended, and next to nothing was computed. */
const QUIET_MS = 2_500;
const QUIET_SHARE = 0.05;
/**
 * Before it collects it looks again, so often, so soon: a look that comes late comes from an image, or the machine is busy, and the quiet
 * of before does not count. Or else all forks of a sandbox collect at the moment in which all of them start.
 */
const LOOKS = 5;
const LOOK_MS = 100;
const LATE_MS = 50;
/** A collection takes 30 ms of a processor, and what works next has to ask for memory again: not for less. */
const WORTH_BYTES = 4 * 1024 * 1024;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

export class IdleMemory {
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #touchedAt = 0;
  #quietLooks = 0;
  #processor = { at: 0, ms: 0 };
  #collect: Collect | undefined;
  #leftBytes = 0;

  /** A request begins or ends. */
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
    // What buffers of transfers leave: the C library keeps freed memory, and giving that back costs next to nothing.
    trim();
    if (process.memoryUsage.rss() - this.#leftBytes < WORTH_BYTES) return;
    this.#collect ??= loadCollect();
    this.#collect({ type: "major", execution: "sync", flavor: "last-resort" });
    trim();
    this.#leftBytes = process.memoryUsage.rss();
  }
}

function trim(): void {
  if (isLibcLoaded()) libc().mallocTrim(0);
}

// The function that V8 gives to contexts that are made while the flag is set; ours was made before.
function loadCollect(): Collect {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  return collect;
}

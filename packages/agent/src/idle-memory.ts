// Gives memory that work has left behind back to the host when there is no work. V8 collects when it needs room, and an idle agent
// never does; after its start alone a quarter of its memory is rubbish, in every sandbox of the machine.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isLibcLoaded, libc } from "./native/libc.ts";

const LOOK_MS = 100;
/** No request has begun or ended, and next to nothing was computed, for so many looks in a row. */
const QUIET_LOOKS = 30;
/**
 * A look that comes later than this comes from an image, or the machine is busy: the quiet of before does not count. Or else all forks of
 * a sandbox collect at the moment in which all of them start.
 */
const LATE_MS = 50;
const QUIET_SHARE = 0.05;
/** A collection takes 30 ms of a processor, and what works next has to ask for memory again: not for less. */
const WORTH_BYTES = 4 * 1024 * 1024;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

export class IdleMemory {
  #timer: NodeJS.Timeout | undefined;
  #collect: Collect | undefined;
  #leftBytes = 0;
  #quietLooks = 0;
  #processorMs = 0;
  #lookedAt = 0;

  /** A request begins or ends. */
  touch(): void {
    this.#quietLooks = 0;
    if (this.#timer) return;
    this.#lookedAt = performance.now();
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  // Streams, watched directories and relayed ports work on between requests: a collection would hold them up.
  #look(): void {
    const { user, system } = process.cpuUsage();
    const processorMs = (user + system) / 1000;
    const now = performance.now();
    const isQuiet = processorMs - this.#processorMs <= LOOK_MS * QUIET_SHARE && now - this.#lookedAt <= LOOK_MS + LATE_MS;
    this.#quietLooks = isQuiet ? this.#quietLooks + 1 : 0;
    this.#processorMs = processorMs;
    this.#lookedAt = now;
    if (this.#quietLooks < QUIET_LOOKS) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#giveBack();
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

// The agent's one inotify descriptor and everybody who watches through it. One, because the host limits how many there
// are (128 by default, for all sandboxes of a runc host together), and because two watchers of one directory then share
// one watch of the kernel.
//
// Everything here is synchronous from the kernel's queue to the watchers' buffers, so that whoever calls `settle` knows
// that all that happened before is told.

import { setImmediate as nextRound } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { Inotify } from "../../native/inotify.ts";
import { IN, type InotifyEvent } from "../../native/inotify-event.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import { EntryReader } from "./entry-reader.ts";
import { Watcher, type WatcherOptions, type WatchSource } from "./watcher.ts";

const MAX_WATCHERS = 10_000;
const MAX_BUFFERED_BYTES = 64 * 1024 * 1024;
/** Of directory scans between two looks at other work. */
const SLICE_MS = 4;
/** What a guest makes faster than we can look at it does not hold up an answer for longer. */
const SETTLE_LIMIT_MS = 1000;
const MAX_ROUNDS = 16;

export class WatchHub implements WatchSource {
  readonly entries = new EntryReader();
  readonly memory = { usedBytes: 0 };
  readonly #inotify = new Inotify((events) => {
    this.#dispatch(events);
    this.#work();
  });
  readonly #watchers = new Set<Watcher>();
  readonly #subscribers = new Map<number, Set<Watcher>>();
  readonly #scans: DirectoryScan[] = [];
  /** Ended, but records of what they found may still be queued. */
  #unsettled: DirectoryScan[] = [];
  #isScheduled = false;

  get isEmpty(): boolean {
    return this.#watchers.size === 0;
  }

  /** Resolves when everything is watched that has to be. Throws what Watcher throws, and ConnectErrors. */
  async watch(options: WatcherOptions, signal: AbortSignal): Promise<Watcher> {
    if (this.#watchers.size >= MAX_WATCHERS) {
      throw new ConnectError(`there are ${MAX_WATCHERS} watchers already`, Code.ResourceExhausted);
    }
    // What happened before is not for the new one.
    this.#work();
    const watcher = this.#create(options);
    try {
      do {
        this.#work();
        if (watcher.isScanning) await nextRound();
        signal.throwIfAborted();
      } while (watcher.isScanning);
      if (watcher.buffer.failure) throw watcher.buffer.failure;
    } catch (error) {
      this.close(watcher);
      throw error;
    }
    return watcher;
  }

  close(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher)) return;
    watcher.buffer.clear();
    // With the descriptor go all watches at once.
    if (this.isEmpty) this.#inotify.close();
    watcher.release();
  }

  /** Afterwards, all that happened before the call is in the buffers, and new directories are watched. */
  async settle(): Promise<void> {
    const giveUp = performance.now() + SETTLE_LIMIT_MS;
    this.#work();
    while (this.#scans.length > 0 && !this.isEmpty && performance.now() < giveUp) {
      await nextRound();
      this.#work();
    }
  }

  #create(options: WatcherOptions): Watcher {
    try {
      const watcher = new Watcher(this, options);
      this.#watchers.add(watcher);
      return watcher;
    } catch (error) {
      if (this.isEmpty) this.#inotify.close();
      throw error;
    }
  }

  subscribe(path: string, watcher: Watcher, mask: number): number {
    const wd = this.#inotify.add(path, mask);
    const subscribers = this.#subscribers.get(wd);
    if (subscribers) subscribers.add(watcher);
    else this.#subscribers.set(wd, new Set([watcher]));
    return wd;
  }

  unsubscribe(wds: Iterable<number>, watcher: Watcher): void {
    for (const wd of wds) {
      const subscribers = this.#subscribers.get(wd);
      subscribers?.delete(watcher);
      if (subscribers?.size !== 0) continue;
      this.#subscribers.delete(wd);
      this.#inotify.remove(wd);
    }
  }

  scan(scan: DirectoryScan): void {
    this.#scans.push(scan);
  }

  #work(): void {
    if (this.isEmpty) return;
    const deadline = performance.now() + SLICE_MS;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const unsettled = this.#unsettled;
      const { events, isDrained } = this.#inotify.read();
      this.#dispatch(events);
      if (isDrained) {
        this.#unsettled = [];
        for (const scan of unsettled) scan.settle();
      }
      this.#stepScans(deadline);
      const isOver = events.length === 0 && this.#unsettled.length === 0;
      if (isOver || performance.now() > deadline) break;
    }
    this.#limitMemory();
    if (this.#scans.length > 0 || this.#unsettled.length > 0) this.#workSoon();
  }

  #workSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#work();
    });
  }

  #stepScans(deadline: number): void {
    for (let scan = this.#scans.pop(); scan; scan = this.#scans.pop()) {
      if (scan.step(deadline)) {
        this.#unsettled.push(scan);
      } else {
        this.#scans.push(scan);
        return;
      }
      if (performance.now() > deadline) return;
    }
  }

  #dispatch(events: InotifyEvent[]): void {
    const arrivals = arrivalsOf(events);
    // The other half of a rename may just be on its way into the queue.
    const isHalf = events.some(({ mask, cookie }) => mask & IN.MOVED_FROM && mask & IN.ISDIR && !arrivals.has(cookie));
    if (isHalf) {
      const more = this.#inotify.read().events;
      for (const event of more) events.push(event);
      for (const [cookie, event] of arrivalsOf(more)) arrivals.set(cookie, event);
    }
    for (const event of events) {
      if (event.mask & IN.Q_OVERFLOW) this.#failAll();
      for (const watcher of [...(this.#subscribers.get(event.wd) ?? [])]) watcher.handle(event, arrivals);
      if (event.mask & IN.IGNORED) this.#subscribers.delete(event.wd);
    }
  }

  // What was lost may have been anybody's.
  #failAll(): void {
    for (const watcher of this.#watchers) {
      watcher.fail(new ConnectError("watcher error: the kernel's event queue overflowed and events are lost; watch again", Code.Internal));
    }
  }

  #limitMemory(): void {
    while (this.memory.usedBytes > MAX_BUFFERED_BYTES) {
      const [largest] = [...this.#watchers].sort((a, b) => b.buffer.usedBytes - a.buffer.usedBytes);
      if (!largest || largest.buffer.usedBytes === 0) return;
      largest.buffer.failUnread();
      largest.release();
    }
  }
}

function arrivalsOf(events: readonly InotifyEvent[]): Map<number, InotifyEvent> {
  return new Map(events.filter(({ mask }) => mask & IN.MOVED_TO).map((event) => [event.cookie, event]));
}

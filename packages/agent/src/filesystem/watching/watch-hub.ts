// The agent's only inotify descriptor, and all watchers that use it. There is only one, because the host limits their number (128 by
// default, for all sandboxes of a runc host together). It also lets two watchers of one directory share one watch of the kernel.
//
// The path from the kernel's queue to the watchers' buffers is synchronous. So when `settle` resolves, all earlier events are reported.

import { setImmediate as nextRound } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { Inotify } from "../../native/inotify.ts";
import { IN, type InotifyEvent } from "../../native/inotify-event.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import { EntryReader } from "./entry-reader.ts";
import { Watcher, type WatcherOptions, type WatchSource } from "./watcher.ts";

/** Limit on watchers, so that a client that never removes them cannot use up the agent's memory. */
const MAX_WATCHERS = 10_000;
/** Limit on the events that all watchers together have not delivered yet. */
const MAX_BUFFERED_BYTES = 64 * 1024 * 1024;
/** Longest time for which directory scans keep the agent from other work. */
const SLICE_MS = 4;
/** Longest wait of a response for directory scans: a guest may create files faster than the agent scans them. */
const SETTLE_LIMIT_MS = 1000;
/** Limit on the rounds of one `#work` call, so that it ends even while events keep coming. */
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
  /** Scans that have ended, while events for what they found may still be queued. */
  #unsettled: DirectoryScan[] = [];
  #isScheduled = false;

  get isEmpty(): boolean {
    return this.#watchers.size === 0;
  }

  /** Resolves when all directories of the watcher are watched. Throws LibcError and ConnectError. */
  async watch(options: WatcherOptions, signal: AbortSignal): Promise<Watcher> {
    if (this.#watchers.size >= MAX_WATCHERS) {
      throw new ConnectError(`there are ${MAX_WATCHERS} watchers already`, Code.ResourceExhausted);
    }
    // Earlier events are not for the new watcher.
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
    // Closing the descriptor removes all watches at once.
    if (this.isEmpty) this.#inotify.close();
    watcher.release();
  }

  /** When it resolves, all events from before the call are in the buffers, and new directories are watched. */
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
    // The second event of a rename may arrive in the queue just now.
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

  // The lost events may have concerned any watcher.
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

// Finds out what a directory contains once it is watched. For files from before there is no inotify event. Files that are created
// during the scan may have one and be found as well. The client gets one event for each.
//
// The work is synchronous, in slices. Between two slices only whole batches of inotify events are handled.

import { type Dir, opendirSync } from "node:fs";

export interface ScanOptions {
  /** Called when the scan begins. The path has one character per byte. */
  readonly path: () => string;
  /** Report nothing: the content is older than the watcher. */
  readonly isSilent: boolean;
  readonly onFound: (name: string, found: { readonly isDirectory: boolean; readonly isNews: boolean }) => void;
  /** Called once, also after a failure or a cancellation. */
  readonly onEnd: (error: unknown) => void;
  /** Called when all inotify events are handled that the scan may have reported already. */
  readonly onSettled: () => void;
}

/** Number of entries that Node.js reads from the directory at once. */
const ENTRIES_PER_READ = 256;
const ENTRIES_PER_CLOCK_CHECK = 16;

export class DirectoryScan {
  readonly #options: ScanOptions;
  #dir: Dir | undefined;
  #isOver = false;
  /** Reported by the scan, not yet by an inotify event. */
  readonly #announced = new Set<string>();
  /** Reported by inotify events since the directory is watched. */
  readonly #recorded = new Set<string>();

  constructor(options: ScanOptions) {
    this.#options = options;
  }

  /** Runs until the deadline. Returns true when the scan has ended. */
  step(deadline: number): boolean {
    if (this.#isOver) return true;
    try {
      this.#dir ??= opendirSync(Buffer.from(this.#options.path(), "latin1"), { encoding: "latin1", bufferSize: ENTRIES_PER_READ });
      for (let count = 1; ; count++) {
        // `onFound` can end everything, including this scan.
        const found = this.#isOver ? null : this.#dir.readSync();
        if (!found) break;
        this.#found(found.name, found.isDirectory());
        if (count % ENTRIES_PER_CLOCK_CHECK === 0 && performance.now() > deadline) return false;
      }
      this.#end(undefined);
    } catch (error) {
      this.#end(error);
    }
    return true;
  }

  /**
   * Whether the client must first learn that `name` exists, for which an inotify event reports a change: it came with the directory,
   * and the scan has not reached it yet.
   */
  isUnreported(name: string): boolean {
    return !this.#options.isSilent && !this.#isOver && !this.#announced.has(name) && !this.#recorded.has(name);
  }

  /** Whether an inotify event about `name` tells the client something new. */
  isNews(name: string, isCreation: boolean): boolean {
    this.#recorded.add(name);
    // Only the first event can be the creation that the scan has reported.
    return !(this.#announced.delete(name) && isCreation);
  }

  cancel(): void {
    this.#end(undefined);
  }

  settle(): void {
    this.#options.onSettled();
  }

  #found(name: string, isDirectory: boolean): void {
    const isNews = !this.#options.isSilent && !this.#recorded.has(name);
    if (isNews) this.#announced.add(name);
    this.#options.onFound(name, { isDirectory, isNews });
  }

  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#dir?.closeSync();
    this.#dir = undefined;
    this.#options.onEnd(error);
  }
}

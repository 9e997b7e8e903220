// Finds out what a directory holds from the moment that it is watched. What was made before has no record of the
// kernel, what is made meanwhile may have one and be found as well: each is told once.
//
// The work is synchronous, in slices: in between, only whole batches of the kernel's records are handled.

import { type Dir, opendirSync } from "node:fs";

export interface ScanOptions {
  /** Asked when the scan begins; one character per byte. */
  readonly path: () => string;
  /** What is found is not told: it was there before the watcher. */
  readonly isSilent: boolean;
  readonly onFound: (name: string, found: { readonly isDirectory: boolean; readonly isNews: boolean }) => void;
  /** Once, also after a failure and when cancelled. */
  readonly onEnd: (error: unknown) => void;
  /** All records are handled that the scan may have told already. */
  readonly onSettled: () => void;
}

const ENTRIES_PER_READ = 256;
const ENTRIES_PER_LOOK_AT_THE_CLOCK = 16;

export class DirectoryScan {
  readonly #options: ScanOptions;
  #dir: Dir | undefined;
  #isOver = false;
  /** Told by the scan, not yet by a record. */
  readonly #announced = new Set<string>();
  /** Told by records since the directory is watched. */
  readonly #recorded = new Set<string>();

  constructor(options: ScanOptions) {
    this.#options = options;
  }

  /** Goes on until the time is over; true at the end. */
  step(deadline: number): boolean {
    if (this.#isOver) return true;
    try {
      this.#dir ??= opendirSync(Buffer.from(this.#options.path(), "latin1"), { encoding: "latin1", bufferSize: ENTRIES_PER_READ });
      for (let count = 1; ; count++) {
        // Finding a directory can end everything, this scan included.
        const found = this.#isOver ? null : this.#dir.readSync();
        if (!found) break;
        this.#found(found.name, found.isDirectory());
        if (count % ENTRIES_PER_LOOK_AT_THE_CLOCK === 0 && performance.now() > deadline) return false;
      }
      this.#end(undefined);
    } catch (error) {
      this.#end(error);
    }
    return true;
  }

  /**
   * Whether `name`, which a record says was changed, has to be told before: it came with the directory, and the scan has
   * not come to it yet.
   */
  isUnheardOf(name: string): boolean {
    return !this.#options.isSilent && !this.#isOver && !this.#announced.has(name) && !this.#recorded.has(name);
  }

  /** Whether a record about `name` is the first that anybody hears of it. */
  isNews(name: string, isCreation: boolean): boolean {
    this.#recorded.add(name);
    // Only the first record can be the one of the creation that was found.
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

import { NameTable } from "../../accounts/accounts.ts";
import { type Entry, readEntry } from "../entry.ts";

/** Concurrent reads: enough to keep the thread pool busy, and few enough to bound memory. */
const MAX_RUNNING = 32;

/** Describes the files of events. The result is undefined for files that no longer exist. */
export class EntryReader {
  #batch: { readonly names: NameTable; readonly entries: Map<string, Promise<Entry | undefined>> } | undefined;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** The path has one character per byte. Events for one file that arrive together share one read. */
  read(path: string): Promise<Entry | undefined> {
    if (!this.#batch) {
      this.#batch = { names: new NameTable(), entries: new Map() };
      queueMicrotask(() => {
        this.#batch = undefined;
      });
    }
    const { names, entries } = this.#batch;
    const entry = entries.get(path) ?? this.#readSoon(Buffer.from(path, "latin1"), names);
    entries.set(path, entry);
    return entry;
  }

  async #readSoon(path: Buffer, names: NameTable): Promise<Entry | undefined> {
    if (this.#running >= MAX_RUNNING) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
    try {
      return await readEntry(path.toString("utf8"), names, path);
    } catch {
      return undefined;
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }
}

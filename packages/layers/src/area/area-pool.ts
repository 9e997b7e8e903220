// Areas made ahead of time, a few of each size that was asked for lately. One is made at a time: real work goes first.

const SIZES = 4;

export interface AreaPoolOptions<T> {
  /** How many of each size are kept ready. */
  readonly ready: number;
  make(sizeMb: number): Promise<T>;
  discard(item: T): Promise<void>;
  /** Hears why nothing could be made or discarded. Filling goes on after the next `want` or `take`. */
  onFailure(error: unknown): void;
}

export class AreaPool<T> {
  readonly #options: AreaPoolOptions<T>;
  /** By size; the one that was asked for last is last. */
  readonly #prepared = new Map<number, T[]>();
  #filling: Promise<void> | undefined;
  #closed = false;

  constructor(options: AreaPoolOptions<T>) {
    this.#options = options;
  }

  /** Keeps areas of this size ready from now on, until too many other sizes were asked for. */
  want(sizeMb: number): void {
    if (this.#closed || this.#options.ready === 0) return;
    const items = this.#prepared.get(sizeMb) ?? [];
    this.#prepared.delete(sizeMb);
    this.#prepared.set(sizeMb, items);
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  /** A ready area, or undefined; others take its place behind the caller's back. */
  take(sizeMb: number): T | undefined {
    const item = this.#prepared.get(sizeMb)?.shift();
    this.want(sizeMb);
    return item;
  }

  /** All that are ready now. */
  items(): T[] {
    return [...this.#prepared.values()].flat();
  }

  /** Nothing is being made any more. */
  async settled(): Promise<void> {
    while (this.#filling) await this.#filling;
  }

  /** Discards what is ready and makes no more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.settled();
    const items = this.items();
    this.#prepared.clear();
    for (const item of items) await this.#discard(item);
  }

  async #fill(): Promise<void> {
    // What asked for this goes first.
    await new Promise((resolve) => setImmediate(resolve));
    while (!this.#closed) {
      await this.#discardForgottenSizes();
      const next = [...this.#prepared].reverse().find(([, items]) => items.length < this.#options.ready);
      if (!next) return;
      const [sizeMb] = next;
      try {
        const item = await this.#options.make(sizeMb);
        // Its size may have been forgotten meanwhile.
        const items = this.#prepared.get(sizeMb);
        if (items) items.push(item);
        else await this.#discard(item);
      } catch (error) {
        this.#options.onFailure(error);
        return;
      }
    }
  }

  async #discardForgottenSizes(): Promise<void> {
    while (this.#prepared.size > SIZES) {
      const [oldest, items] = this.#prepared.entries().next().value ?? [0, []];
      this.#prepared.delete(oldest);
      for (const item of items) await this.#discard(item);
    }
  }

  async #discard(item: T): Promise<void> {
    try {
      await this.#options.discard(item);
    } catch (error) {
      this.#options.onFailure(error);
    }
  }
}

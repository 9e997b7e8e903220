// Areas prepared ahead of time, a few of each recently used size. One is prepared at a time, so that requests come first.

/** How many sizes have prepared areas. Requests for a further size discard those of the least recently used one. */
const SIZES = 4;

export interface AreaPoolOptions<T> {
  /** How many of each size are kept ready. */
  readonly ready: number;
  make(sizeMb: number): Promise<T>;
  discard(item: T): Promise<void>;
  /** Called when an area could not be created or discarded. The next `want` or `take` continues to fill the pool. */
  onFailure(error: unknown): void;
}

export class AreaPool<T> {
  readonly #options: AreaPoolOptions<T>;
  /** By size, the most recently used one last. */
  readonly #prepared = new Map<number, T[]>();
  #filling: Promise<void> | undefined;
  #closed = false;

  constructor(options: AreaPoolOptions<T>) {
    this.#options = options;
  }

  /** Keeps areas of this size ready from now on, until too many other sizes have been requested. */
  want(sizeMb: number): void {
    if (this.#closed || this.#options.ready === 0) return;
    const items = this.#prepared.get(sizeMb) ?? [];
    this.#prepared.delete(sizeMb);
    this.#prepared.set(sizeMb, items);
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  /** A ready area, or undefined. The pool is refilled in the background. */
  take(sizeMb: number): T | undefined {
    const item = this.#prepared.get(sizeMb)?.shift();
    this.want(sizeMb);
    return item;
  }

  /** All areas that are ready now. */
  items(): T[] {
    return [...this.#prepared.values()].flat();
  }

  /** Resolves when no area is being prepared. */
  async settled(): Promise<void> {
    while (this.#filling) await this.#filling;
  }

  /** Discards the ready areas and prepares no more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.settled();
    const items = this.items();
    this.#prepared.clear();
    for (const item of items) await this.#discard(item);
  }

  async #fill(): Promise<void> {
    // The caller's own work comes first.
    await new Promise((resolve) => setImmediate(resolve));
    while (!this.#closed) {
      await this.#discardForgottenSizes();
      const next = [...this.#prepared].reverse().find(([, items]) => items.length < this.#options.ready);
      if (!next) return;
      const [sizeMb] = next;
      try {
        const item = await this.#options.make(sizeMb);
        // The size may have been forgotten in the meantime.
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

import { type ProcessEvent, Subscriber } from "./subscriber.ts";

/** The followers of one process. One that was cut off does not count, even if its client keeps the connection open. */
export class Followers {
  readonly #all = new Set<Subscriber>();
  readonly #onChange: () => void;

  /** `onChange` is called when a follower was added or removed, or has read. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** True when there are followers and all are full: then the process has to wait. Without followers its output is dropped. */
  get areFull(): boolean {
    return this.#all.size > 0 && this.#all.values().every((subscriber) => subscriber.isFull);
  }

  add(): Subscriber {
    const subscriber = new Subscriber(() => {
      if (subscriber.hasFailed) this.#all.delete(subscriber);
      this.#onChange();
    });
    this.#all.add(subscriber);
    return subscriber;
  }

  remove(subscriber: Subscriber): void {
    this.#all.delete(subscriber);
    this.#onChange();
  }

  push(event: ProcessEvent, bytes: number): void {
    for (const subscriber of this.#all) subscriber.push(event, bytes);
  }

  /** Ends all streams; queued events are still delivered. */
  close(): void {
    for (const subscriber of this.#all) subscriber.close();
  }
}

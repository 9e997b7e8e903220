import { type ProcessEvent, Subscriber } from "./subscriber.ts";

/** All who follow one process. Those that were cut off do not count, however long their clients keep the connection. */
export class Followers {
  readonly #all = new Set<Subscriber>();
  readonly #onChange: () => void;

  /** `onChange`: somebody came, went or has read. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** True when somebody follows and nobody can take more: the process has to wait then. Nobody there means that its output is dropped. */
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

  /** No more events. */
  close(): void {
    for (const subscriber of this.#all) subscriber.close();
  }
}

/** Lets the one reader of a queue wait for the next item, for a limited time. */
export class Wakeup {
  #wake: (() => void) | undefined;

  /** Resolves on the next `wake`, or after `limitMs`. */
  wait(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(done, limitMs);
      this.#wake = done;
    });
  }

  wake(): void {
    this.#wake?.();
  }
}

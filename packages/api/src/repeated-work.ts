export interface RepeatedWorkOptions<Result> {
  readonly work: () => Promise<Result>;
  /** Before the first round, and after each one. */
  readonly pauseMs: number;
  /** Replaces `pauseMs` after a round that succeeded. */
  readonly pauseAfter?: (result: Result) => number;
  /** Must not throw. */
  readonly onError: (error: unknown) => void;
}

/** Repeats work with pauses until it is stopped. Rounds never overlap. */
export class RepeatedWork<Result = void> {
  readonly #options: RepeatedWorkOptions<Result>;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isStopped = true;
  constructor(options: RepeatedWorkOptions<Result>) {
    this.#options = options;
  }

  start(firstPauseMs = this.#options.pauseMs): void {
    this.#isStopped = false;
    this.#schedule(firstPauseMs);
  }

  /** Resolves when the round that is under way is over. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  #schedule(pauseMs: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#run().then((nextMs) => this.#schedule(nextMs));
    }, pauseMs);
  }

  async #run(): Promise<number> {
    const { work, pauseMs, pauseAfter, onError } = this.#options;
    try {
      const result = await work();
      return pauseAfter?.(result) ?? pauseMs;
    } catch (error) {
      onError(error);
      return pauseMs;
    }
  }
}

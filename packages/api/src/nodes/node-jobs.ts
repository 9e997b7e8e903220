import { NodeTurns } from "./node-turns.ts";

interface Subject {
  readonly id: string;
  readonly nodeId: string;
}

export interface NodeJobsOptions<T> {
  /** In the background, on each node. */
  readonly atOnce: number;
  readonly work: (subject: T) => Promise<void>;
  /** Hears what failed where nobody waited for it. */
  readonly onFailure: (subject: T, error: unknown) => void;
}

/** One kind of work on nodes, never twice at once for one subject: whoever asks for it while it is under way waits for the same. */
export class NodeJobs<T extends Subject> {
  readonly #options: NodeJobsOptions<T>;
  readonly #turns: NodeTurns;
  readonly #active = new Map<string, Promise<void>>();
  readonly #background = new Map<string, Promise<void>>();
  #stopped = false;
  constructor(options: NodeJobsOptions<T>) {
    this.#options = options;
    this.#turns = new NodeTurns(options.atOnce);
  }

  run(subject: T): Promise<void> {
    const active = this.#active.get(subject.id);
    if (active) return active;
    const work = this.#options.work(subject).finally(() => this.#active.delete(subject.id));
    this.#active.set(subject.id, work);
    return work;
  }

  /** For when nobody waits: only so many run at once on a node. */
  runInBackground(subject: T): void {
    const { id, nodeId } = subject;
    if (this.#active.has(id) || this.#background.has(id)) return;
    const work = this.#turns
      .run(nodeId, async () => {
        if (!this.#stopped) await this.run(subject);
      })
      .catch((error: unknown) => this.#options.onFailure(subject, error))
      .finally(() => this.#background.delete(id));
    this.#background.set(id, work);
  }

  /** Answers when everything is over that is under way or waits for its turn, also what failed. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#background.values(), ...this.#active.values()]);
  }

  /** Waits for what is under way, and begins no more of what waits. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#active.values());
  }
}

import pLimit, { type LimitFunction } from "p-limit";

/** Limits the work that waits for each node, so that a node that does not answer delays no other node's work. */
export class NodeTurns {
  readonly #atOnce: number;
  readonly #turns = new Map<string, LimitFunction>();
  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  run<T>(nodeId: string, work: () => Promise<T>): Promise<T> {
    const turns = this.#turns.get(nodeId) ?? pLimit(this.#atOnce);
    this.#turns.set(nodeId, turns);
    return turns(work);
  }
}

interface Subject {
  readonly id: string;
  readonly nodeId: string;
}

export interface NodeJobsOptions<T> {
  /** How many background jobs run at once on each node. */
  readonly atOnce: number;
  readonly work: (subject: T) => Promise<void>;
  /** Called when a background job fails. */
  readonly onFailure: (subject: T, error: unknown) => void;
}

/** One kind of work on nodes. Callers that ask for the same subject while it is under way share one job. */
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

  /** The ids of all subjects with a running or queued job. */
  ids(): ReadonlySet<string> {
    return new Set([...this.#active.keys(), ...this.#background.keys()]);
  }

  run(subject: T): Promise<void> {
    const active = this.#active.get(subject.id);
    if (active) return active;
    const work = this.#options.work(subject).finally(() => this.#active.delete(subject.id));
    this.#active.set(subject.id, work);
    return work;
  }

  /** Runs the job when the node has a free turn. Failures go to `onFailure`. */
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

  /** Resolves when every running and every queued job has ended, failed jobs included. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#background.values(), ...this.#active.values()]);
  }

  /** Resolves when the running jobs have ended. Queued jobs are dropped. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#active.values());
  }
}

// Runs the reconciliation repeatedly, separately for each node: a node that does not answer delays only its own sandboxes.

import type { Logger } from "@skerry/base";
import type { NodeHandle } from "../../nodes/directory.ts";
import type { SandboxDeps } from "../deps.ts";
import { Reconciler } from "./reconcile.ts";

export class ReconcileRounds {
  readonly #deps: SandboxDeps;
  readonly #reconciler: Reconciler;
  readonly #shared: Rounds;
  readonly #ofNodes = new Map<string, Rounds>();
  #isStarted = false;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#reconciler = new Reconciler(deps);
    this.#shared = this.#rounds(async () => {
      this.#takeIn();
      await this.#reconciler.round();
    });
  }

  start(): void {
    this.#isStarted = true;
    this.#shared.start();
  }

  /** Runs a whole round now. Resolves when everything that it began has ended. */
  async now(): Promise<void> {
    this.#takeIn();
    await Promise.all([...this.#ofNodes.values()].map((rounds) => rounds.now()));
    await this.#shared.now();
    await this.#deps.kills.settled();
    await this.#deps.images.settled();
  }

  async stop(): Promise<void> {
    this.#isStarted = false;
    await Promise.all([this.#shared, ...this.#ofNodes.values()].map((rounds) => rounds.stop()));
  }

  /** Begins rounds for nodes that are new. */
  #takeIn(): void {
    for (const node of this.#deps.nodes.list()) {
      if (this.#ofNodes.has(node.nodeId)) continue;
      const rounds = this.#rounds(() => this.#roundOf(node));
      this.#ofNodes.set(node.nodeId, rounds);
      if (this.#isStarted) rounds.start();
    }
  }

  async #roundOf({ nodeId }: NodeHandle): Promise<void> {
    const node = this.#deps.nodes.find(nodeId);
    if (node) await this.#reconciler.roundOf(node);
  }

  #rounds(work: () => Promise<void>): Rounds {
    return new Rounds(work, { everyMs: this.#deps.timing.reconcileMs, logger: this.#deps.logger });
  }
}

/** Repeats a task. It never runs twice at the same time. */
class Rounds {
  readonly #work: () => Promise<void>;
  readonly #options: { readonly everyMs: number; readonly logger: Logger };
  #current: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #stopped = true;
  constructor(work: () => Promise<void>, options: { everyMs: number; logger: Logger }) {
    this.#work = work;
    this.#options = options;
  }

  start(): void {
    this.#stopped = false;
    this.#repeat();
  }

  now(): Promise<void> {
    const round = this.#current.then(this.#work);
    this.#current = round.catch(() => {});
    return round;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#current;
  }

  #repeat(): void {
    this.now()
      .catch((error: unknown) => this.#options.logger.error({ err: error }, "the reconciliation failed"))
      .finally(() => {
        if (!this.#stopped) this.#timer = setTimeout(() => this.#repeat(), this.#options.everyMs);
      });
  }
}

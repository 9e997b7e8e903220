// Stores metrics every five seconds, and summarises old ones every minute.
//
// Failure policy: nothing waits for metrics. A round that fails is repeated with the next one.

import { setTimeout as sleep } from "node:timers/promises";
import type { Clock, Logger } from "@skerry/base";
import { METRIC_STEPS, type Store } from "@skerry/store";
import type { StartCounts } from "./start-counts.ts";

const STEP_MS = METRIC_STEPS[0].stepMs;
const SUMMARISE_EVERY_MS = 60_000;

export interface MetricRoundsDeps {
  readonly store: Pick<Store, "nodes" | "sandboxMetrics" | "teamMetrics">;
  /** What is collected from nodes. */
  readonly collectors: readonly { collect(): Promise<void> }[];
  readonly starts: StartCounts;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly roundMs: number;
  /** Age after which metrics are deleted. */
  readonly keepMs: number;
}

export class MetricRounds {
  readonly #deps: MetricRoundsDeps;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #summarisedAt = Number.NEGATIVE_INFINITY;
  constructor(deps: MetricRoundsDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#stop = new AbortController();
    this.#running = this.#run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** One round now. */
  async now(): Promise<void> {
    const { collectors, clock, store, keepMs } = this.#deps;
    await this.#countTeams();
    await Promise.all(collectors.map((collector) => collector.collect()));
    const now = clock.now();
    if (now - this.#summarisedAt < SUMMARISE_EVERY_MS) return;
    await store.sandboxMetrics.summarise(now, now - keepMs);
    await store.teamMetrics.summarise(now, now - keepMs);
    this.#summarisedAt = now;
  }

  async #countTeams(): Promise<void> {
    const { store, starts, clock } = this.#deps;
    const running = await store.nodes.runningByTeam();
    const at = Math.floor(clock.now() / STEP_MS) * STEP_MS;
    const started = starts.take();
    try {
      await store.teamMetrics.add(
        [...new Set([...running.keys(), ...started.keys()])].map((teamId) => ({
          teamId,
          at,
          stepMs: STEP_MS,
          concurrent: running.get(teamId) ?? 0,
          starts: started.get(teamId) ?? 0,
        })),
      );
    } catch (error) {
      for (const [teamId, count] of started) starts.add(teamId, count);
      throw error;
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.now().catch((error: unknown) => this.#deps.logger.warn({ err: error }, "storing metrics failed; they are stored later"));
      await sleep(this.#deps.roundMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }
}

// Keeps a runner for each webhook that this process holds the lease of. Another process takes over what a dead process held, when its
// lease has run out.

import type { Logger } from "@skerry/base";
import { isDatabaseAway, type WebhookRepository } from "@skerry/store";
import type { EventFeed } from "../events/event-feed.ts";
import { RepeatedWork } from "../repeated-work.ts";
import type { AddressGuard } from "./address-guard.ts";
import { AT_ONCE, type RunnerDeps, runWebhook } from "./webhook-runner.ts";
import { WebhookSender } from "./webhook-sender.ts";

export interface DispatcherDeps extends Omit<RunnerDeps, "sender"> {
  readonly webhooks: WebhookRepository;
  readonly feed: EventFeed;
  readonly guard: AddressGuard;
  readonly logger: Logger;
  /** Interval between two looks for webhooks that nobody delivers. */
  readonly lookMs: number;
  /** How long a process keeps a webhook without a sign of life. */
  readonly leaseMs: number;
  readonly timeoutMs: number;
}

interface Running {
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

export class WebhookDispatcher {
  readonly #deps: DispatcherDeps;
  readonly #runners = new Map<string, Running>();
  readonly #rounds: RepeatedWork;
  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#rounds = new RepeatedWork({
      work: () => this.#look(),
      pauseMs: deps.lookMs,
      onError: (error) => {
        if (!isDatabaseAway(error)) deps.logger.warn({ err: error }, "looking for webhooks failed");
      },
    });
  }

  start(): void {
    this.#rounds.start(0);
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
    for (const { abort } of this.#runners.values()) abort.abort();
    await Promise.all([...this.#runners.values()].map(({ done }) => done));
    const { webhooks, owner } = this.#deps;
    // Without a database the lease runs out by itself.
    await webhooks.deliveries.release(owner).catch(() => {});
  }

  async #look(): Promise<void> {
    const { webhooks, owner, clock, leaseMs } = this.#deps;
    const now = clock.now();
    const held = new Map((await webhooks.deliveries.lease({ owner, now, until: now + leaseMs })).map(({ id, teamId }) => [id, teamId]));
    for (const [id, { abort }] of this.#runners) if (!held.has(id)) abort.abort();
    for (const [id, teamId] of held) if (!this.#runners.has(id)) this.#run(id, teamId);
  }

  #run(id: string, teamId: string): void {
    const abort = new AbortController();
    const { guard, timeoutMs, logger } = this.#deps;
    const sender = new WebhookSender({ guard, timeoutMs, connections: AT_ONCE });
    const done = runWebhook({ ...this.#deps, sender }, { id, teamId }, abort.signal)
      .catch((error: unknown) => {
        if (!isDatabaseAway(error)) logger.error({ err: error, webhook_id: id, team_id: teamId }, "delivering a webhook failed");
      })
      // The next look begins anew.
      .finally(() => this.#runners.delete(id));
    this.#runners.set(id, { abort, done });
  }
}

// Delivers the events of one webhook, a bounded number at a time. Each webhook has its own runner and connections, so a slow endpoint delays
// nobody else. What was delivered is recorded afterwards: after a crash it is sent again, with the same id.
// Failure policy: the runner waits while the database is away, and ends when it does not hold the webhook any more.

import { setTimeout as sleep } from "node:timers/promises";
import type { Clock, Logger } from "@skerry/base";
import type { Delivery, DeliveryReport, EventRepository, OwnedWebhook, StoredEvent, WebhookRepository } from "@skerry/store";
import type { EventFeed, Subscription } from "../events/event-feed.ts";
import { encodeEvent } from "../http/output/encode-event.ts";
import { webhookAttemptDuration, webhookAttempts, webhookDeadLetters } from "../metrics.ts";
import { type Attempt, type RetryPolicy, reportOf } from "./delivery-plan.ts";
import type { WebhookSecrets } from "./webhook-secrets.ts";
import type { WebhookSender } from "./webhook-sender.ts";

/** Events that are sent to one endpoint at the same time. */
export const AT_ONCE = 10;
/** Failed deliveries of one webhook that wait. Further events stay unsent until there are fewer, and are kept as long as events are. */
const MAX_PENDING = 100;
/** How long a runner may not notice a change of its webhook. */
const LOOK_MS = 1_000;

export interface RunnerDeps {
  readonly webhooks: WebhookRepository;
  readonly events: EventRepository;
  readonly feed: EventFeed;
  readonly secrets: WebhookSecrets;
  readonly sender: WebhookSender;
  readonly policy: RetryPolicy;
  readonly keepDays: number;
  readonly owner: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Work {
  readonly event: StoredEvent;
  readonly before: Delivery | undefined;
}

interface Batch {
  readonly work: readonly Work[];
  /** Failed deliveries whose events are not kept any more. */
  readonly gone: readonly number[];
  readonly cursor: number;
  readonly skipped: number;
  /** Failed deliveries that wait. */
  readonly waiting: number;
}

/** Resolves when the signal is aborted, or the webhook is disabled, deleted or another process's. */
export async function runWebhook(deps: RunnerDeps, of: { id: string; teamId: string }, signal: AbortSignal): Promise<void> {
  const { subscription, end } = deps.feed.subscribe(of.teamId);
  try {
    while (!signal.aborted) {
      const hook = await deps.webhooks.deliveries.findHeld(of.id, deps.owner);
      if (!hook) return;
      await step(deps, hook, { subscription, signal });
    }
  } finally {
    end();
    deps.sender.close();
  }
}

async function step(
  deps: RunnerDeps,
  hook: OwnedWebhook,
  { subscription, signal }: { subscription: Subscription; signal: AbortSignal },
): Promise<void> {
  const now = deps.clock.now();
  if (hook.retryAt !== undefined && hook.retryAt > now) {
    await sleep(Math.min(hook.retryAt - now, LOOK_MS), undefined, { signal }).catch(() => {});
    return;
  }
  const batch = await nextBatch(deps, hook, now);
  if (batch.work.length === 0 && batch.gone.length === 0 && batch.cursor === hook.cursor) {
    const due = await deps.webhooks.deliveries.nextDue(hook.id);
    await subscription.next(Math.max(10, Math.min(LOOK_MS, (due ?? Number.POSITIVE_INFINITY) - now)), signal);
    return;
  }
  const attempts = await Promise.all(batch.work.map((work) => attempt(deps, hook, work)));
  // What a stopping process cut off itself is no failure of the endpoint.
  if (signal.aborted && attempts.some(({ sent }) => sent.kind === "failed")) return;
  const after = deps.clock.now();
  const report = reportOf(hook, attempts, { policy: deps.policy, now: after, random: Math.random, waiting: batch.waiting });
  // A step that sent nothing says nothing about the endpoint.
  const failing = attempts.length > 0 ? report.failing : failingOf(hook, now);
  await deps.webhooks.deliveries.report(hook, {
    ...report,
    delivered: [...report.delivered, ...batch.gone],
    failing,
    cursor: { from: hook.cursor, to: batch.cursor },
    skipped: batch.skipped + batch.gone.length,
    now: after,
  });
  webhookDeadLetters.inc(report.failed.filter(({ isDead }) => isDead).length);
  if (failing?.disable !== undefined) {
    deps.logger.warn({ webhook_id: hook.id, team_id: hook.teamId, reason: failing.disable }, "a webhook was disabled");
  }
}

function failingOf(hook: OwnedWebhook, now: number): DeliveryReport["failing"] {
  if (hook.failures === 0) return undefined;
  return { failures: hook.failures, since: hook.failingSince ?? now, retryAt: hook.retryAt ?? now, error: hook.lastError ?? "" };
}

/** What failed before and is due, then new events. A failing endpoint gets one event, in turns one that failed before and a new one. */
async function nextBatch(deps: RunnerDeps, hook: OwnedWebhook, now: number): Promise<Batch> {
  const isProbe = hook.failures > 0;
  const waiting = await deps.webhooks.deliveries.countPending(hook.id);
  const fresh = waiting < MAX_PENDING ? await freshEvents(deps, hook, isProbe ? 1 : AT_ONCE) : undefined;
  const isTurnOfFresh = isProbe && fresh !== undefined && fresh.work.length > 0 && (waiting === 0 || hook.failures % 2 === 0);
  if (isTurnOfFresh) return { ...fresh, waiting, gone: [] };
  const { work, gone } = await failedEvents(
    deps,
    hook,
    isProbe ? { before: Number.MAX_SAFE_INTEGER, limit: 1 } : { before: now, limit: AT_ONCE },
  );
  const room = isProbe ? 0 : AT_ONCE - work.length;
  if (!fresh || work.length === 0) return { ...(fresh ?? { work: [], cursor: hook.cursor, skipped: 0 }), waiting, gone };
  const some = fresh.work.slice(0, room);
  const cursor = some.length === fresh.work.length ? fresh.cursor : (some.at(-1)?.event.sequence ?? hook.cursor);
  return { work: [...work, ...some], gone, cursor, skipped: some.length > 0 ? fresh.skipped : 0, waiting };
}

async function failedEvents(
  { webhooks, events }: RunnerDeps,
  hook: OwnedWebhook,
  which: { readonly before: number; readonly limit: number },
): Promise<Pick<Batch, "work" | "gone">> {
  const work: Work[] = [];
  const gone: number[] = [];
  for (const before of await webhooks.deliveries.listDue(hook.id, which.before, which.limit)) {
    const [event] = await events.list({ teamId: hook.teamId }, { order: "asc", limit: 1, after: { place: before.sequence - 1 } });
    if (event?.sequence === before.sequence) work.push({ event, before });
    else gone.push(before.sequence);
  }
  return { work, gone };
}

async function freshEvents({ events }: RunnerDeps, hook: OwnedWebhook, limit: number): Promise<Pick<Batch, "work" | "cursor" | "skipped">> {
  // Read before the events: what comes later is not skipped.
  const last = await events.last(hook.teamId);
  if (last <= hook.cursor) return { work: [], cursor: hook.cursor, skipped: 0 };
  const filter = { teamId: hook.teamId, ...(hook.types === undefined ? {} : { types: hook.types }) };
  const found = await events.list(filter, { order: "asc", limit, after: { place: hook.cursor } });
  const oldest = (await events.oldest(hook.teamId)) ?? last + 1;
  const reached = found.at(-1)?.sequence ?? 0;
  return {
    work: found.map((event) => ({ event, before: undefined })),
    cursor: found.length === limit ? reached : Math.max(last, reached),
    skipped: Math.max(0, oldest - 1 - hook.cursor),
  };
}

async function attempt(deps: RunnerDeps, hook: OwnedWebhook, { event, before }: Work): Promise<Attempt> {
  const body = JSON.stringify(encodeEvent(event, deps));
  const message = { id: event.id, at: new Date(), body };
  const startedAt = performance.now();
  const sent = await deps.sender.send(hook.url, deps.secrets.open(hook), message);
  webhookAttemptDuration.observe((performance.now() - startedAt) / 1000);
  webhookAttempts.inc({ result: sent.kind });
  return { sequence: event.sequence, before, sent };
}

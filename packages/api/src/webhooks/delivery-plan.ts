// What the results of some deliveries mean for the next attempts. An event that fails while others succeed waits by itself. When nothing
// succeeds, the endpoint as a whole waits, and one event at a time tries it: in turns one that failed before and a new one, so that a single
// event that is never taken does not look like an endpoint that is down.

import type { Delivery, DeliveryReport, FailedDelivery, OwnedWebhook } from "@skerry/store";
import type { Sent } from "./webhook-sender.ts";

export interface RetryPolicy {
  /** The wait after the first failure. It doubles with each further one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** After failing for this long, an event becomes a dead letter, and a webhook is disabled. */
  readonly giveUpMs: number;
}

export interface Attempt {
  readonly sequence: number;
  /** The failures before this attempt. */
  readonly before: Delivery | undefined;
  readonly sent: Sent;
}

/** Up to a fifth more or less, so that what failed together is not tried again together. */
export function delayOf(failures: number, policy: RetryPolicy, random: () => number): number {
  const delayMs = Math.min(policy.longestMs, policy.firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(delayMs * (0.8 + 0.4 * random()));
}

export function reportOf(
  hook: Pick<OwnedWebhook, "failures" | "failingSince">,
  attempts: readonly Attempt[],
  about: {
    readonly policy: RetryPolicy;
    readonly now: number;
    readonly random: () => number;
    /** Failed deliveries that waited before these attempts. */
    readonly waiting: number;
  },
): Pick<DeliveryReport, "delivered" | "failed" | "failing"> {
  const { policy, now, random } = about;
  const delivered = attempts.filter(({ sent }) => sent.kind === "ok").map(({ sequence }) => sequence);
  const failed: FailedDelivery[] = [];
  let lastError: string | undefined;
  let isGone = false;
  for (const { sequence, before, sent } of attempts) {
    if (sent.kind === "ok") continue;
    const count = (before?.attempts ?? 0) + 1;
    const firstAt = before?.firstAt ?? now;
    const isDead = now - firstAt >= policy.giveUpMs;
    failed.push({ sequence, attempts: count, firstAt, nextAt: now + delayOf(count, policy, random), isDead, error: sent.error });
    lastError = sent.error;
    isGone ||= sent.isGone;
  }
  if (lastError === undefined || (delivered.length > 0 && !isGone)) return { delivered, failed, failing: undefined };
  const failures = hook.failures + 1;
  const since = hook.failingSince ?? now;
  // A single event may be the reason. It becomes a dead letter, and the endpoint gets the next one.
  const isMany = about.waiting + failed.filter(({ attempts: count }) => count === 1).length > 1;
  const disable = isGone ? "gone" : isMany && now - since >= policy.giveUpMs ? "failing" : undefined;
  const failing = { failures, since, retryAt: now + delayOf(failures, policy, random), error: lastError };
  return { delivered, failed, failing: disable === undefined ? failing : { ...failing, disable } };
}

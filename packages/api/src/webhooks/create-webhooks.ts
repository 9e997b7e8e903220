import type { Clock, Logger } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiConfig, ApiTiming } from "../config.ts";
import type { EventFeed } from "../events/event-feed.ts";
import type { SecretBox } from "../secrets/secret-box.ts";
import { AddressGuard } from "./address-guard.ts";
import { resolveName } from "./resolve-name.ts";
import { WebhookDispatcher } from "./webhook-dispatcher.ts";
import { WebhookSecrets } from "./webhook-secrets.ts";
import { WebhookService } from "./webhook-service.ts";

export interface Webhooks {
  readonly service: WebhookService;
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  readonly feed: EventFeed;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: ApiTiming;
  /** This run of this process. */
  readonly owner: string;
}

export function createWebhooks(config: Pick<ApiConfig, "eventDays" | "webhookNetworks">, deps: Deps): Webhooks {
  const { clock, logger, timing, feed, owner } = deps;
  const { webhooks, events } = deps.store;
  const guard = new AddressGuard(config.webhookNetworks ?? [], resolveName);
  const secrets = new WebhookSecrets(deps.box);
  const timeoutMs = timing.webhookTimeoutMs;
  const policy = { firstMs: timing.webhookRetryMs, longestMs: timing.webhookLongestRetryMs, giveUpMs: timing.webhookGiveUpMs };
  const shared = { webhooks, secrets, guard, clock, timeoutMs };
  const limits = { policy, keepDays: config.eventDays, lookMs: timing.webhookLookMs, leaseMs: timing.deadAfterMs };
  const dispatcher = new WebhookDispatcher({ ...shared, ...limits, events, feed, owner, logger });
  return {
    service: new WebhookService(shared),
    async start() {
      await secrets.reseal(webhooks, logger);
      dispatcher.start();
    },
    stop: () => dispatcher.stop(),
  };
}

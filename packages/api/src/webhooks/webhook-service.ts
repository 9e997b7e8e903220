import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import type { Clock, Secret } from "@skerry/base";
import type { Delivery, EventType, OwnedWebhook, Webhook, WebhookRepository } from "@skerry/store";
import { invalid, publicError } from "../errors.ts";
import type { AddressGuard } from "./address-guard.ts";
import type { WebhookSecrets } from "./webhook-secrets.ts";
import { type Sent, WebhookSender } from "./webhook-sender.ts";

export const MAX_WEBHOOKS = 20;

export interface WebhookServiceDeps {
  readonly webhooks: WebhookRepository;
  readonly secrets: WebhookSecrets;
  readonly guard: AddressGuard;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

export interface NewWebhookInput {
  readonly name: string;
  readonly url: string;
  readonly types: readonly EventType[] | undefined;
  readonly enabled: boolean;
}

export class WebhookService {
  readonly #deps: WebhookServiceDeps;
  constructor(deps: WebhookServiceDeps) {
    this.#deps = deps;
  }

  /** The secret is returned this once. */
  async create(teamId: string, input: NewWebhookInput): Promise<{ readonly hook: Webhook; readonly secret: Secret }> {
    const { webhooks, secrets, clock } = this.#deps;
    const secret = secrets.make();
    const hook = { ...input, url: this.#checked(input.url), id: randomUUID(), teamId, createdAt: clock.now() };
    const added = await webhooks.add({ ...hook, ...secrets.seal(hook, secret) }, MAX_WEBHOOKS);
    if (added === "full") throw publicError("limit_reached", `The team has ${MAX_WEBHOOKS} webhooks, and may have that many`);
    return { hook: added, secret };
  }

  async list(teamId: string): Promise<readonly Webhook[]> {
    return await this.#deps.webhooks.list(teamId);
  }

  async get(teamId: string, id: string): Promise<OwnedWebhook> {
    const hook = await this.#deps.webhooks.find({ teamId, id });
    if (!hook) throw notFound();
    return hook;
  }

  async update(
    teamId: string,
    id: string,
    change: Partial<Omit<NewWebhookInput, "types">> & { readonly types?: readonly EventType[] | null },
  ): Promise<Webhook> {
    const url = change.url === undefined ? undefined : this.#checked(change.url);
    return found(await this.#deps.webhooks.update({ teamId, id }, { ...change, url, now: this.#deps.clock.now() }));
  }

  /** Replaces the secret. Deliveries have the new signature within a second. */
  async renewSecret(teamId: string, id: string): Promise<Secret> {
    const { webhooks, secrets, clock } = this.#deps;
    const secret = secrets.make();
    found(await webhooks.update({ teamId, id }, { sealed: secrets.seal({ teamId, id }, secret), now: clock.now() }));
    return secret;
  }

  async remove(teamId: string, id: string): Promise<void> {
    if (!(await this.#deps.webhooks.remove({ teamId, id }))) throw notFound();
  }

  async listDeliveries(teamId: string, id: string, page: { readonly after: number; readonly limit: number }): Promise<readonly Delivery[]> {
    await this.get(teamId, id);
    return await this.#deps.webhooks.listDeliveries(id, page);
  }

  /** Delivers the events after a sequence once more, or without one those that failed. */
  async replay(teamId: string, id: string, after: number | undefined): Promise<Webhook> {
    const { webhooks, clock } = this.#deps;
    const hook = await this.get(teamId, id);
    if (after === undefined) await webhooks.revive({ teamId, id }, clock.now());
    else if (!(await webhooks.rewind({ teamId, id }, { after, now: clock.now() }))) {
      throw invalid(`after must not be higher than ${hook.cursor}, the sequence up to which events were sent`);
    }
    return await this.get(teamId, id);
  }

  /** Sends a message to the endpoint now, whether the webhook is enabled or not. It is no event, and is not repeated. */
  async test(teamId: string, id: string): Promise<Sent & { readonly durationMs: number }> {
    const { guard, secrets, timeoutMs } = this.#deps;
    const hook = await this.get(teamId, id);
    const sender = new WebhookSender({ guard, timeoutMs, connections: 1 });
    const at = new Date();
    const body = JSON.stringify({ type: "webhook.test", timestamp: at.toISOString(), event_data: { webhook_id: id } });
    const begunAt = performance.now();
    try {
      const sent = await sender.send(hook.url, secrets.open(hook), { id: `test_${randomUUID()}`, at, body });
      return { ...sent, durationMs: Math.round(performance.now() - begunAt) };
    } finally {
      sender.close();
    }
  }

  /** Throws for an address that no delivery could ever reach. Names are checked at each connection. */
  #checked(text: string): string {
    const url = URL.parse(text);
    if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) throw invalid("url must begin with https:// or http://");
    if (url.username !== "" || url.password !== "") throw invalid("url must not contain a user or a password");
    const literal = url.hostname.replace(/^\[|\]$/g, "");
    if (isIP(literal) !== 0 && !this.#deps.guard.allows(literal, url.protocol)) throw invalid("url must not lead to a private address");
    url.hash = "";
    return url.href;
  }
}

function found(hook: Webhook | undefined): Webhook {
  if (!hook) throw notFound();
  return hook;
}

function notFound(): Error {
  return publicError("not_found", "Webhook not found");
}

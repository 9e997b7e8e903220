import type { Delivery, Webhook } from "@skerry/store";
import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { typesOf } from "../events/event-query.ts";
import { uuidOf } from "../keys/key-bodies.ts";

const Time = (description: string) => Type.String({ format: "date-time", description });

const MAX_NAME = 256;
const MAX_URL = 2048;

const Fields = {
  name: Type.Optional(Type.String({ maxLength: MAX_NAME, description: "For people. Default: empty." })),
  url: Type.String({ minLength: 1, maxLength: MAX_URL, description: "Where events are sent: `https`, and a public address." }),
  types: Type.Optional(
    Type.Union([Type.Array(Type.String(), { minItems: 1, maxItems: 100 }), Type.Null()], {
      description: "Only events of these types. Null, the default: all.",
    }),
  ),
  enabled: Type.Optional(Type.Boolean({ description: "False: nothing is sent, and events are kept for later. Default: true." })),
};

export const NewWebhookSchema = Type.Object(Fields, { title: "NewWebhook" });
export const WebhookChangeSchema = Type.Object({ ...Fields, url: Type.Optional(Fields.url) }, { title: "WebhookChange" });

const Shown = {
  webhookID: Type.String(),
  name: Type.String(),
  url: Type.String(),
  types: Type.Optional(Type.Array(Type.String(), { description: "Absent: all types." })),
  enabled: Type.Boolean(),
  disabledReason: Type.Optional(
    Type.String({ description: "`failing`: nothing was delivered for too long. `gone`: the endpoint answered 410." }),
  ),
  cursor: Type.Integer({ description: "Events up to this `sequence` were delivered, or are listed as failed deliveries." }),
  failures: Type.Integer({ description: "Failures in a row." }),
  retryAt: Type.Optional(Time("Nothing is sent before.")),
  lastError: Type.Optional(Type.String()),
  lastDeliveredAt: Type.Optional(Time("When an event was last delivered.")),
  skipped: Type.Integer({ description: "Events that were deleted before they could be delivered." }),
  createdAt: Time("When it was made."),
  updatedAt: Time("When its team last changed it."),
};

export const WebhookSchema = Type.Object(Shown, { title: "Webhook" });
export const WebhookWithSecretSchema = Type.Object(
  { ...Shown, secret: Type.String({ description: "Signs the deliveries. It is shown this once." }) },
  { title: "WebhookWithSecret" },
);
export const WebhookParams = Type.Object({ webhookID: Type.String({ description: "The webhook's id." }) });

export const DeliverySchema = Type.Object(
  {
    sequence: Type.Integer({ description: "The event." }),
    state: Type.String({ description: "`pending`: it is tried again. `dead`: it is not, until a replay." }),
    attempts: Type.Integer(),
    firstAt: Time("The first attempt."),
    nextAt: Type.Optional(Time("The next attempt.")),
    error: Type.String(),
  },
  { title: "WebhookDelivery" },
);

export const TestResultSchema = Type.Object(
  {
    ok: Type.Boolean(),
    status: Type.Optional(Type.Integer({ description: "The status that the endpoint answered." })),
    error: Type.Optional(Type.String()),
    durationMs: Type.Integer(),
  },
  { title: "WebhookTest" },
);

export function webhookIdOf(params: { readonly webhookID: string }): string {
  return uuidOf(params.webhookID, "webhook");
}

interface Given {
  readonly name?: string;
  readonly types?: readonly string[] | null;
  readonly enabled?: boolean;
}

export function changeOf({ name, types, enabled, url }: Given & { readonly url?: string }) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(url === undefined ? {} : { url }),
    ...(types === undefined ? {} : { types: types === null ? null : typesOf(types.join(",")) }),
  };
}

export function newWebhookOf(body: Given & { readonly url: string }) {
  const { name = "", enabled = true, types = null, url } = body;
  if (/\p{Cc}/u.test(name)) throw invalid("name must not contain control characters");
  return { name, enabled, url, types: types === null ? undefined : typesOf(types.join(",")) };
}

export function encodeWebhook(hook: Webhook): Record<string, unknown> {
  const { id, name, url, types, enabled, disabledReason, cursor, failures, retryAt, lastError, lastDeliveredAt, skipped } = hook;
  return {
    webhookID: id,
    name,
    url,
    ...(types ? { types } : {}),
    enabled,
    ...(disabledReason === undefined ? {} : { disabledReason }),
    cursor,
    failures,
    ...(retryAt === undefined ? {} : { retryAt: new Date(retryAt).toISOString() }),
    ...(lastError === undefined ? {} : { lastError }),
    ...(lastDeliveredAt === undefined ? {} : { lastDeliveredAt: new Date(lastDeliveredAt).toISOString() }),
    skipped,
    createdAt: new Date(hook.createdAt).toISOString(),
    updatedAt: new Date(hook.updatedAt).toISOString(),
  };
}

export function encodeDelivery({ sequence, state, attempts, firstAt, nextAt, error }: Delivery): Record<string, unknown> {
  const next = state === "pending" ? { nextAt: new Date(nextAt).toISOString() } : {};
  return { sequence, state, attempts, firstAt: new Date(firstAt).toISOString(), ...next, error };
}

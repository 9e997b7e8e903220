import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { NO_STORE } from "../../output/encode-error.ts";
import { failures } from "../../output/responses.ts";
import { encodeWebhook, NewWebhookSchema, newWebhookOf, WebhookWithSecretSchema } from "./webhook-bodies.ts";

export const createWebhook = defineOperation({
  id: "createWebhook",
  method: "POST",
  path: "/webhooks",
  tag: "events",
  summary: "Create a webhook",
  description: "Events from now on are sent to its address, signed as Standard Webhooks describes.",
  auth: ["apiKey"],
  scope: "events:write",
  body: NewWebhookSchema,
  responses: { 201: { description: "The webhook with its secret.", schema: WebhookWithSecretSchema }, ...failures(429) },
  repeatable: false,
  handle: async ({ webhooks }, { caller, body }) => {
    const { hook, secret } = await webhooks.create(teamOf(caller).id, newWebhookOf(body));
    return { status: 201, headers: NO_STORE, body: { ...encodeWebhook(hook), secret: secret.reveal() } };
  },
});

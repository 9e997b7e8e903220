import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeWebhook, WebhookParams, WebhookSchema, webhookIdOf } from "./webhook-bodies.ts";

export const getWebhook = defineOperation({
  id: "getWebhook",
  method: "GET",
  path: "/webhooks/{webhookID}",
  tag: "events",
  summary: "Get a webhook",
  auth: ["apiKey"],
  scope: "events:read",
  params: WebhookParams,
  responses: { 200: { description: "The webhook, without its secret.", schema: WebhookSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ webhooks }, { caller, params }) => ({
    status: 200,
    body: encodeWebhook(await webhooks.get(teamOf(caller).id, webhookIdOf(params))),
  }),
});

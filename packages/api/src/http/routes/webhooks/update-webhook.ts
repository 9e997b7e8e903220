import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { changeOf, encodeWebhook, WebhookChangeSchema, WebhookParams, WebhookSchema, webhookIdOf } from "./webhook-bodies.ts";

export const updateWebhook = defineOperation({
  id: "updateWebhook",
  method: "PATCH",
  path: "/webhooks/{webhookID}",
  tag: "events",
  summary: "Change a webhook",
  description: "What is absent stays. Enabling a webhook that the platform disabled goes on with the event after `cursor`.",
  auth: ["apiKey"],
  scope: "events:write",
  params: WebhookParams,
  body: WebhookChangeSchema,
  responses: { 200: { description: "The webhook.", schema: WebhookSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ webhooks }, { caller, params, body }) => ({
    status: 200,
    body: encodeWebhook(await webhooks.update(teamOf(caller).id, webhookIdOf(params), changeOf(body))),
  }),
});

import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { WebhookParams, webhookIdOf } from "./webhook-bodies.ts";

export const deleteWebhook = defineOperation({
  id: "deleteWebhook",
  method: "DELETE",
  path: "/webhooks/{webhookID}",
  tag: "events",
  summary: "Delete a webhook",
  auth: ["apiKey"],
  scope: "events:write",
  params: WebhookParams,
  responses: { 204: { description: "Nothing is sent any more, apart from what is on its way." }, ...failures(404) },
  repeatable: true,
  handle: async ({ webhooks }, { caller, params }) => {
    await webhooks.remove(teamOf(caller).id, webhookIdOf(params));
    return { status: 204 };
  },
});

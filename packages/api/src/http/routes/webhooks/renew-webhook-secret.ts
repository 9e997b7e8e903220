import { Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { NO_STORE } from "../../output/encode-error.ts";
import { failures } from "../../output/responses.ts";
import { WebhookParams, webhookIdOf } from "./webhook-bodies.ts";

export const renewWebhookSecret = defineOperation({
  id: "renewWebhookSecret",
  method: "POST",
  path: "/webhooks/{webhookID}/secret",
  tag: "events",
  summary: "Give a webhook a new secret",
  description: "Deliveries are signed with the new secret within a second.",
  auth: ["apiKey"],
  scope: "events:write",
  params: WebhookParams,
  responses: {
    200: {
      description: "The secret, which is shown this once.",
      schema: Type.Object({ secret: Type.String() }, { title: "WebhookSecret" }),
    },
    ...failures(404),
  },
  repeatable: false,
  handle: async ({ webhooks }, { caller, params }) => {
    const secret = await webhooks.renewSecret(teamOf(caller).id, webhookIdOf(params));
    return { status: 200, headers: NO_STORE, body: { secret: secret.reveal() } };
  },
});

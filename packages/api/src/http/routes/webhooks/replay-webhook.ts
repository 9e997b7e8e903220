import { Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeWebhook, WebhookParams, WebhookSchema, webhookIdOf } from "./webhook-bodies.ts";

export const replayWebhook = defineOperation({
  id: "replayWebhook",
  method: "POST",
  path: "/webhooks/{webhookID}/replay",
  tag: "events",
  summary: "Send events once more",
  description: "With `after`: all events after this `sequence`. Without it: the deliveries that failed, also dead ones.",
  auth: ["apiKey"],
  scope: "events:write",
  params: WebhookParams,
  body: Type.Object({ after: Type.Optional(Type.Integer({ minimum: 0 })) }, { title: "WebhookReplay" }),
  bodyOptional: true,
  responses: { 200: { description: "The webhook.", schema: WebhookSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ webhooks }, { caller, params, body }) => ({
    status: 200,
    body: encodeWebhook(await webhooks.replay(teamOf(caller).id, webhookIdOf(params), body?.after)),
  }),
});

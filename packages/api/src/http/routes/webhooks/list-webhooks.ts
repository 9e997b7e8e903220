import { Type } from "typebox";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { encodeWebhook, WebhookSchema } from "./webhook-bodies.ts";

export const listWebhooks = defineOperation({
  id: "listWebhooks",
  method: "GET",
  path: "/webhooks",
  tag: "events",
  summary: "List webhooks",
  description: "The oldest first.",
  auth: ["apiKey"],
  scope: "events:read",
  responses: { 200: { description: "All webhooks of the team.", schema: Type.Array(WebhookSchema) }, ...failures() },
  repeatable: true,
  handle: async ({ webhooks }, { caller }) => ({ status: 200, body: (await webhooks.list(teamOf(caller).id)).map(encodeWebhook) }),
});

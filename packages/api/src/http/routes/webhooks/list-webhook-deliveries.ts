import { Type } from "typebox";
import { MAX_PAGE, PageFields } from "../../input/cursor.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { DeliverySchema, encodeDelivery, WebhookParams, webhookIdOf } from "./webhook-bodies.ts";

export const listWebhookDeliveries = defineOperation({
  id: "listWebhookDeliveries",
  method: "GET",
  path: "/webhooks/{webhookID}/deliveries",
  tag: "events",
  summary: "List failed deliveries",
  description: "The oldest event first. A delivery that succeeded is not listed.",
  auth: ["apiKey"],
  scope: "events:read",
  params: WebhookParams,
  query: Type.Object({
    limit: PageFields.limit,
    after: Type.Optional(Type.Integer({ minimum: 0, description: "Only after this `sequence`." })),
  }),
  responses: { 200: { description: "One page.", schema: Type.Array(DeliverySchema) }, ...failures(404) },
  repeatable: true,
  handle: async ({ webhooks }, { caller, params, query }) => {
    const { limit = MAX_PAGE, after = 0 } = query;
    const deliveries = await webhooks.listDeliveries(teamOf(caller).id, webhookIdOf(params), { after, limit });
    return { status: 200, body: deliveries.map(encodeDelivery) };
  },
});

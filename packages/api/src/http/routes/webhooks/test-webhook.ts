import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { TestResultSchema, WebhookParams, webhookIdOf } from "./webhook-bodies.ts";

export const testWebhook = defineOperation({
  id: "testWebhook",
  method: "POST",
  path: "/webhooks/{webhookID}/test",
  tag: "events",
  summary: "Test a webhook",
  description: "Sends a message of type `webhook.test` now, and answers how it went.",
  auth: ["apiKey"],
  scope: "events:write",
  params: WebhookParams,
  responses: { 200: { description: "How it went.", schema: TestResultSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ webhooks }, { caller, params }) => {
    const { kind, status, durationMs, ...rest } = await webhooks.test(teamOf(caller).id, webhookIdOf(params));
    const error = "error" in rest ? { error: rest.error } : {};
    return { status: 200, body: { ok: kind === "ok", ...(status === undefined ? {} : { status }), ...error, durationMs } };
  },
});

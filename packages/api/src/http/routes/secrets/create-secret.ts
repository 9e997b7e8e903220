import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CONFIDENTIAL, encodeSecret, NewSecretSchema, SecretSchema, secretChangeOf, secretNameOf } from "./secret-bodies.ts";

export const createSecret = defineOperation({
  id: "createSecret",
  method: "POST",
  path: "/secrets",
  tag: "secrets",
  summary: "Create a secret",
  description: "The value is encrypted, and no answer contains it.",
  auth: ["apiKey"],
  scope: "secrets:write",
  confidential: CONFIDENTIAL,
  body: NewSecretSchema,
  responses: { 201: { description: "The secret, without its value.", schema: SecretSchema }, ...failures(409, 429) },
  repeatable: false,
  handle: async ({ secrets }, { caller, body }) => {
    const secret = await secrets.create(teamOf(caller).id, secretNameOf(body.name), secretChangeOf(body));
    return { status: 201, body: encodeSecret(secret) };
  },
});

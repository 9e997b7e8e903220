import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import {
  CONFIDENTIAL,
  encodeSecret,
  SecretParams,
  SecretSchema,
  SecretUpdateSchema,
  secretChangeOf,
  secretReferenceOf,
} from "./secret-bodies.ts";

export const updateSecret = defineOperation({
  id: "updateSecret",
  method: "POST",
  path: "/secrets/{secretID}",
  tag: "secrets",
  summary: "Give a secret a new value",
  description: "The secret gets the next version, and the former value is gone. Without `metadata`, the metadata stays.",
  auth: ["apiKey"],
  scope: "secrets:write",
  confidential: CONFIDENTIAL,
  params: SecretParams,
  body: SecretUpdateSchema,
  responses: { 200: { description: "The secret, without its value.", schema: SecretSchema }, ...failures(404) },
  repeatable: false,
  handle: async ({ secrets }, { caller, params, body }) => {
    const secret = await secrets.update(teamOf(caller).id, secretReferenceOf(params), secretChangeOf(body));
    return { status: 200, body: encodeSecret(secret) };
  },
});

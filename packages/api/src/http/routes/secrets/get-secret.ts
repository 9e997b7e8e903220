import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CONFIDENTIAL, encodeSecret, SecretParams, SecretSchema, secretReferenceOf } from "./secret-bodies.ts";

export const getSecret = defineOperation({
  id: "getSecret",
  method: "GET",
  path: "/secrets/{secretID}",
  tag: "secrets",
  summary: "Get a secret, without its value",
  auth: ["apiKey"],
  scope: "secrets:read",
  confidential: CONFIDENTIAL,
  params: SecretParams,
  responses: { 200: { description: "The secret, without its value.", schema: SecretSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ secrets }, { caller, params }) => {
    return { status: 200, body: encodeSecret(await secrets.get(teamOf(caller).id, secretReferenceOf(params))) };
  },
});

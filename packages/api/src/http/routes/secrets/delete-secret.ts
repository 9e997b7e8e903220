import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CONFIDENTIAL, SecretParams, secretReferenceOf } from "./secret-bodies.ts";

export const deleteSecret = defineOperation({
  id: "deleteSecret",
  method: "DELETE",
  path: "/secrets/{secretID}",
  tag: "secrets",
  summary: "Delete a secret",
  auth: ["apiKey"],
  scope: "secrets:write",
  confidential: CONFIDENTIAL,
  params: SecretParams,
  responses: { 204: { description: "The secret is deleted." }, ...failures(404) },
  repeatable: true,
  handle: async ({ secrets }, { caller, params }) => {
    await secrets.remove(teamOf(caller).id, secretReferenceOf(params));
    return { status: 204 };
  },
});

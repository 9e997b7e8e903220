import { teamHeaderOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CreatedApiKeySchema, encodeApiKey, NewKeySchema, newKeyOf } from "./key-bodies.ts";

export const createApiKey = defineOperation({
  id: "createApiKey",
  method: "POST",
  path: "/api-keys",
  tag: "teams",
  summary: "Create an API key",
  description: "The key is shown only in this answer. A user names the team in `X-Team-ID`; without it, it is the user's default team.",
  auth: ["accessToken"],
  scope: "keys:write",
  body: NewKeySchema,
  responses: { 201: { description: "The key.", schema: CreatedApiKeySchema }, ...failures(403) },
  repeatable: false,
  handle: async (services, request) => {
    const team = await services.teams.choose(request.caller, teamHeaderOf(request.headers));
    const createdBy = request.caller.kind === "user" ? request.caller.userId : undefined;
    const { key, secret } = await services.keys.create(team.id, newKeyOf(request, createdBy));
    return { status: 201, body: { ...encodeApiKey(key), key: secret.reveal() } };
  },
});

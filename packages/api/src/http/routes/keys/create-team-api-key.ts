import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { CreatedApiKeySchema, encodeApiKey, NewKeySchema, newKeyOf, uuidOf } from "./key-bodies.ts";

export const createTeamApiKey = defineOperation({
  id: "createTeamApiKey",
  method: "POST",
  path: "/admin/teams/{teamID}/api-keys",
  tag: "admin",
  summary: "Create an API key for a team",
  description: "The key is shown only in this answer.",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({ teamID: Type.String({ description: "The team's id." }) }),
  body: NewKeySchema,
  responses: { 201: { description: "The key.", schema: CreatedApiKeySchema }, ...failures(403, 404) },
  repeatable: false,
  handle: async (services, request) => {
    const teamId = uuidOf(request.params.teamID, "team");
    const { key, secret } = await services.keys.createForTeam(teamId, newKeyOf(request));
    return { status: 201, body: { ...encodeApiKey(key), key: secret.reveal() } };
  },
});

import { Type } from "typebox";
import { teamHeaderOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { ID_NOT_FOUND, idNotFound, uuidOf } from "./key-bodies.ts";

export const deleteApiKey = defineOperation({
  id: "deleteApiKey",
  method: "DELETE",
  path: "/api-keys/{apiKeyID}",
  tag: "teams",
  summary: "Delete an API key",
  description: "When the answer arrives, no process accepts the key any more. Requests that were accepted before are finished.",
  auth: ["accessToken", "adminTeam"],
  scope: "keys:write",
  params: Type.Object({ apiKeyID: Type.String({ description: "The key's id." }) }),
  responses: { 204: { description: "The key is deleted." }, ...failures(403), 404: ID_NOT_FOUND },
  repeatable: true,
  handle: async (services, { caller, headers, params }) => {
    const id = uuidOf(params.apiKeyID, "API key");
    const team = await services.teams.choose(caller, teamHeaderOf(headers));
    await services.keys.assertChangeable(caller, { teamId: team.id, keyId: id });
    return (await services.keys.remove(team.id, id)) ? { status: 204 } : idNotFound();
  },
});

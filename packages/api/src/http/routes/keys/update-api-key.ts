import { Type } from "typebox";
import { teamHeaderOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { ID_NOT_FOUND, idNotFound, nameOf, RenamedKeySchema, uuidOf } from "./key-bodies.ts";

export const updateApiKey = defineOperation({
  id: "updateApiKey",
  method: "PATCH",
  path: "/api-keys/{apiKeyID}",
  tag: "teams",
  summary: "Rename an API key",
  auth: ["accessToken", "adminTeam"],
  scope: "keys:write",
  params: Type.Object({ apiKeyID: Type.String({ description: "The key's id." }) }),
  body: RenamedKeySchema,
  responses: { 202: { description: "The key has the new name." }, ...failures(403), 404: ID_NOT_FOUND },
  repeatable: true,
  handle: async (services, { caller, headers, params, body }) => {
    const id = uuidOf(params.apiKeyID, "API key");
    const team = await services.teams.choose(caller, teamHeaderOf(headers));
    await services.keys.assertChangeable(caller, { teamId: team.id, keyId: id });
    return (await services.keys.rename(team.id, id, nameOf(body))) ? { status: 202 } : idNotFound();
  },
});

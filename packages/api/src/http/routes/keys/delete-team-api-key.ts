import { Type } from "typebox";
import { publicError } from "../../../errors.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "./key-bodies.ts";

export const deleteTeamApiKey = defineOperation({
  id: "deleteTeamApiKey",
  method: "DELETE",
  path: "/admin/teams/{teamID}/api-keys/{apiKeyID}",
  tag: "admin",
  summary: "Delete a team's API key",
  description: "When the answer arrives, no process accepts the key any more.",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({
    teamID: Type.String({ description: "The team's id." }),
    apiKeyID: Type.String({ description: "The key's id." }),
  }),
  responses: { 204: { description: "The key is deleted." }, ...failures(404) },
  repeatable: true,
  handle: async (services, { params }) => {
    const teamId = uuidOf(params.teamID, "team");
    if (await services.keys.remove(teamId, uuidOf(params.apiKeyID, "API key"))) return { status: 204 };
    throw publicError("not_found", "API key not found");
  },
});

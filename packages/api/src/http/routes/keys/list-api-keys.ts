import { Type } from "typebox";
import { teamHeaderOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { ApiKeySchema, encodeApiKey } from "./key-bodies.ts";

export const listApiKeys = defineOperation({
  id: "listApiKeys",
  method: "GET",
  path: "/api-keys",
  tag: "teams",
  summary: "List the team's API keys",
  description:
    "All keys of the team, oldest first, masked. A user names the team in `X-Team-ID`; without it, it is the user's default team.",
  auth: ["accessToken", "adminTeam"],
  scope: "keys:read",
  responses: { 200: { description: "The keys.", schema: Type.Array(ApiKeySchema) }, ...failures(403, 404) },
  repeatable: true,
  handle: async (services, { caller, headers }) => {
    const team = await services.teams.choose(caller, teamHeaderOf(headers));
    return { status: 200, body: (await services.keys.list(team.id)).map(encodeApiKey) };
  },
});

import { Type } from "typebox";
import { API_KEY_PREFIX, credentialOf, makeApiKey } from "../../../keys/credential.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

const TeamSchema = Type.Object(
  { teamID: Type.String(), name: Type.String(), apiKey: Type.String(), isDefault: Type.Boolean() },
  { title: "Team" },
);

export const listTeams = defineOperation({
  id: "listTeams",
  method: "GET",
  path: "/teams",
  tag: "teams",
  summary: "List the caller's teams",
  description: "Every answer makes a new API key for each team: only hashes of keys are kept, so none can be shown twice.",
  auth: ["accessToken"],
  responses: { 200: { description: "The teams.", schema: Type.Array(TeamSchema) }, ...failures() },
  repeatable: false,
  handle: async (services, { caller }) => {
    const userId = caller.kind === "user" ? caller.userId : "";
    const memberships = await services.store.identity.listMemberships(userId);
    const body = await Promise.all(
      memberships.map(async ({ team, isDefault }) => {
        const key = makeApiKey();
        const about = { prefix: API_KEY_PREFIX, name: "made for the command line", now: services.clock.now() };
        await services.store.identity.addApiKey({ ...credentialOf(key, about), teamId: team.id });
        return { teamID: team.id, name: team.name, apiKey: key.reveal(), isDefault };
      }),
    );
    return { status: 200, body };
  },
});

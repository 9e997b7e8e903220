import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { encodeTeam, TeamDetailSchema, TeamParams } from "../members/member-bodies.ts";

export const getTeam = defineOperation({
  id: "getTeam",
  method: "GET",
  path: "/admin/teams/{teamID}",
  tag: "admin",
  summary: "Read a team",
  auth: ["admin"],
  scope: "operator",
  params: TeamParams,
  responses: { 200: { description: "The team.", schema: TeamDetailSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ accounts }, { params }) => ({ status: 200, body: encodeTeam(await accounts.getTeam(uuidOf(params.teamID, "team"))) }),
});

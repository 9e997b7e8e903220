import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { TeamParams } from "../limits/limit-bodies.ts";
import { encodeStanding, NewStandingSchema, TeamStandingSchema } from "./standing-bodies.ts";

export const setTeamStanding = defineOperation({
  id: "setTeamStanding",
  method: "PUT",
  path: "/admin/teams/{teamID}/standing",
  tag: "admin",
  summary: "Block or ban a team",
  description:
    "Counts for the team's next request, in every API process. Its sandboxes go on; traffic does not wake paused ones. An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  params: TeamParams,
  body: NewStandingSchema,
  responses: { 200: { description: "The standing.", schema: TeamStandingSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ standings }, { params, body }) => ({
    status: 200,
    body: encodeStanding(await standings.set(uuidOf(params.teamID, "team"), body.standing, body.reason ?? "")),
  }),
});

import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import { TeamParams } from "../limits/limit-bodies.ts";
import { encodeStanding, TeamStandingSchema } from "./standing-bodies.ts";

export const getTeamStanding = defineOperation({
  id: "getTeamStanding",
  method: "GET",
  path: "/admin/teams/{teamID}/standing",
  tag: "admin",
  summary: "Read whether a team is blocked or banned",
  description: "An addition of Skerry.",
  auth: ["admin"],
  scope: "operator",
  params: TeamParams,
  responses: { 200: { description: "The standing.", schema: TeamStandingSchema }, ...failures(404) },
  repeatable: true,
  handle: async ({ standings }, { params }) => ({ status: 200, body: encodeStanding(await standings.of(uuidOf(params.teamID, "team"))) }),
});

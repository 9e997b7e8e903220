import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { nameOf } from "../keys/key-bodies.ts";
import { encodeTeam, NewTeamSchema, TeamDetailSchema } from "../members/member-bodies.ts";

export const createTeam = defineOperation({
  id: "createTeam",
  method: "POST",
  path: "/admin/teams",
  tag: "admin",
  summary: "Create a team",
  description: "It has no members: set one, or invite one.",
  auth: ["admin"],
  scope: "operator",
  body: NewTeamSchema,
  responses: { 201: { description: "The team.", schema: TeamDetailSchema }, ...failures(409) },
  repeatable: false,
  handle: async ({ accounts }, { body }) => {
    const team = await accounts.createTeam({ name: nameOf(body), slug: body.slug });
    return { status: 201, body: encodeTeam(team) };
  },
});

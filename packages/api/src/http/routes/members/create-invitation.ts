import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { uuidOf } from "../keys/key-bodies.ts";
import {
  CreatedInvitationSchema,
  DEFAULT_INVITATION_SECONDS,
  emailOf,
  encodeInvitation,
  NewInvitationSchema,
  TeamParams,
} from "./member-bodies.ts";

export const createInvitation = defineOperation({
  id: "createInvitation",
  method: "POST",
  path: "/teams/{teamID}/invitations",
  tag: "teams",
  summary: "Invite somebody to a team",
  description: "Whoever accepts with the token becomes a member. It works once. An addition of Skerry.",
  auth: ["accessToken", "admin"],
  scope: "team:write",
  params: TeamParams,
  body: NewInvitationSchema,
  responses: { 201: { description: "The invitation.", schema: CreatedInvitationSchema }, ...failures(403, 404, 429) },
  repeatable: false,
  handle: async (services, { caller, params, body }) => {
    const by = await services.teams.membershipOf(caller, uuidOf(params.teamID, "team"));
    const { invitation, token } = await services.members.invite(by, {
      email: emailOf(body),
      role: body.role,
      lifeMs: (body.expiresIn ?? DEFAULT_INVITATION_SECONDS) * 1000,
      createdBy: caller.kind === "user" ? caller.userId : null,
    });
    return { status: 201, body: { ...encodeInvitation(invitation), token: token.reveal() } };
  },
});

// What the operations on members, invitations, teams and users read and answer.

import type { Invitation, ListedTeam, Member, User } from "@skerry/store";
import { type Static, Type } from "typebox";
import { validationError } from "../../../errors.ts";
import { DateTime, Int32 } from "../../schemas.ts";
import { Name } from "../keys/key-bodies.ts";

const DAY_SECONDS = 86_400;

export const RoleSchema = Type.Union([Type.Literal("owner"), Type.Literal("admin"), Type.Literal("developer"), Type.Literal("viewer")], {
  description: "What the user may do in the team.",
});
const Email = Type.String({ maxLength: 320, description: "An address, for people. The platform sends no mail." });
const NullableEmail = Type.Union([Email, Type.Null()]);

export const TeamParams = Type.Object({ teamID: Type.String({ description: "The team's id." }) });
export const MemberParams = Type.Object({ ...TeamParams.properties, userID: Type.String({ description: "The user's id." }) });
export const UserParams = Type.Object({ userID: Type.String({ description: "The user's id." }) });

export const NameBody = Type.Object({ name: Name });

export const MemberSchema = Type.Object(
  {
    userID: Type.String(),
    name: Type.String(),
    email: NullableEmail,
    role: RoleSchema,
    since: Type.Optional(DateTime("When the user joined. Absent: at the first start.")),
  },
  { title: "TeamMember" },
);

export const TeamDetailSchema = Type.Object(
  {
    teamID: Type.String(),
    slug: Type.String({ description: "The namespace of the names of the team's templates." }),
    name: Type.String(),
    createdAt: DateTime("When the team was created."),
  },
  { title: "TeamDetail" },
);

export const UserSchema = Type.Object(
  { userID: Type.String(), name: Type.String(), email: NullableEmail, createdAt: DateTime("When the user was created.") },
  { title: "User" },
);

export const NewTeamSchema = Type.Object(
  {
    name: Name,
    slug: Type.String({
      pattern: "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
      description: "The namespace of the names of the team's templates. It never changes.",
    }),
  },
  { title: "NewTeam" },
);
export const NewUserSchema = Type.Object({ name: Name, email: Type.Optional(Email) }, { title: "NewUser" });

export const InvitationSchema = Type.Object(
  {
    invitationID: Type.String(),
    email: NullableEmail,
    role: RoleSchema,
    createdAt: DateTime("When the invitation was created."),
    expiresAt: DateTime("Until when it may be accepted."),
  },
  { title: "Invitation" },
);
export const CreatedInvitationSchema = Type.Object(
  { ...InvitationSchema.properties, token: Type.String({ description: "What the invited user accepts with. It is shown only here." }) },
  { title: "CreatedInvitation" },
);
export const NewInvitationSchema = Type.Object(
  {
    role: RoleSchema,
    email: Type.Optional(Email),
    expiresIn: Type.Optional(
      Int32({ description: "Seconds until it expires.", minimum: 60, maximum: 30 * DAY_SECONDS, default: 7 * DAY_SECONDS }),
    ),
  },
  { title: "NewInvitation" },
);
export const DEFAULT_INVITATION_SECONDS = 7 * DAY_SECONDS;

export function emailOf({ email }: { readonly email?: string }): string | null {
  if (email === undefined) return null;
  if (email.includes("\0") || !email.isWellFormed() || !/^\S+@\S+$/.test(email))
    throw validationError("body/email must be an e-mail address");
  return email;
}

export function encodeMember({ user, role, since }: Member): Static<typeof MemberSchema> {
  const joined = since === 0 ? {} : { since: new Date(since).toISOString() };
  return { userID: user.id, name: user.name, email: user.email, role, ...joined };
}

export function encodeTeam(team: ListedTeam): Static<typeof TeamDetailSchema> {
  return { teamID: team.id, slug: team.slug, name: team.name, createdAt: new Date(team.createdAt).toISOString() };
}

export function encodeUser(user: User): Static<typeof UserSchema> {
  return { userID: user.id, name: user.name, email: user.email, createdAt: new Date(user.createdAt).toISOString() };
}

export function encodeInvitation(invitation: Invitation): Static<typeof InvitationSchema> {
  return {
    invitationID: invitation.id,
    email: invitation.email,
    role: invitation.role,
    createdAt: new Date(invitation.createdAt).toISOString(),
    expiresAt: new Date(invitation.expiresAt).toISOString(),
  };
}

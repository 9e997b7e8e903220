import { type Static, Type } from "typebox";
import type { ApiServices } from "../../services.ts";
import { encodeUser, RoleSchema, UserSchema } from "../members/member-bodies.ts";

export const AccountSchema = Type.Object(
  {
    ...UserSchema.properties,
    teams: Type.Array(
      Type.Object({ teamID: Type.String(), slug: Type.String(), name: Type.String(), role: RoleSchema, isDefault: Type.Boolean() }),
      { description: "The default team comes first." },
    ),
  },
  { title: "Account" },
);

export async function accountOf(services: ApiServices, userId: string): Promise<Static<typeof AccountSchema>> {
  const user = await services.accounts.getUser(userId);
  const memberships = await services.teams.memberships(userId);
  return {
    ...encodeUser(user),
    teams: memberships.map(({ team, role, isDefault }) => ({ teamID: team.id, slug: team.slug, name: team.name, role, isDefault })),
  };
}

// Finds what the command line names: a team by its slug or id, a user by the e-mail address or id.

import { OperatorError } from "@skerry/setup/folder";
import { isUuid } from "@skerry/wire";
import type { OperatorContext } from "../context.ts";
import { PlatformClient } from "../templates/platform-client.ts";

/** Options of every command on users, teams and keys. */
export interface AccountOptions {
  readonly data?: string;
  readonly json?: boolean;
}

export interface Team {
  readonly teamID: string;
  readonly slug: string;
  readonly name: string;
  readonly createdAt: string;
}

export interface User {
  readonly userID: string;
  readonly name: string;
  readonly email: string | null;
  readonly createdAt: string;
}

/** The team of the first start. */
export const FIRST_TEAM = "default";

export async function openAccounts(context: OperatorContext, options: AccountOptions): Promise<PlatformClient> {
  return await PlatformClient.openAsOperator(context, options.data);
}

export async function findTeam(client: PlatformClient, name: string): Promise<Team> {
  if (isUuid(name)) return await client.call<Team>("GET", `/admin/teams/${name}`);
  const team = (await client.list<Team>("/admin/teams")).find(({ slug }) => slug === name);
  if (team) return team;
  throw new OperatorError(`there is no team ${name}`, { hints: ["./skerry teams lists the slugs and ids of all teams."] });
}

export async function findUser(client: PlatformClient, name: string): Promise<User> {
  if (isUuid(name)) return await client.call<User>("GET", `/admin/users/${name}`);
  const [user, ...others] = (await client.list<User>("/admin/users")).filter(({ email }) => email === name);
  if (!user) throw new OperatorError(`there is no user ${name}`, { hints: ["./skerry users lists the addresses and ids of all users."] });
  if (others.length === 0) return user;
  const ids = [user, ...others].map(({ userID }) => userID).join(", ");
  throw new OperatorError(`${others.length + 1} users have the address ${name}`, { hints: [`Name one by its id: ${ids}`] });
}

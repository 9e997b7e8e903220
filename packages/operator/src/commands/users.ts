import { type AccountOptions, findUser, openAccounts, type User } from "../accounts/accounts-client.ts";
import { minute, note, printFields, printJson, printList, printMade } from "../accounts/print.ts";
import type { OperatorContext } from "../context.ts";

interface Account extends User {
  readonly teams: readonly { readonly slug: string; readonly role: string }[];
}

interface Token {
  readonly id: string;
  readonly name: string;
  readonly mask: { readonly prefix: string; readonly maskedValuePrefix: string; readonly maskedValueSuffix: string };
  readonly createdAt: string;
  readonly lastUsed?: string;
  readonly expiresAt?: string;
  readonly scopes?: readonly string[];
}

export async function listUsers(context: OperatorContext, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  printList(await client.list<User>("/admin/users"), {
    ...options,
    columns: ["NAME", "EMAIL", "CREATED", "ID"],
    row: ({ name, email, createdAt, userID }) => [name, email ?? "-", minute(createdAt), userID],
    none: "There are no users.",
  });
}

export async function createUser(context: OperatorContext, name: string, options: AccountOptions & { email?: string }): Promise<void> {
  const client = await openAccounts(context, options);
  const { email } = options;
  const user = await client.call<User>("POST", "/admin/users", { body: { name, ...(email === undefined ? {} : { email }) } });
  printMade({ value: user.userID, about: "The user has no teams and no token yet.", whole: user }, options);
}

export async function showUser(context: OperatorContext, name: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { userID } = await findUser(client, name);
  const account = await client.call<Account>("GET", `/admin/users/${userID}`);
  if (options.json) return printJson(account);
  printFields({
    id: account.userID,
    name: account.name,
    email: account.email ?? "",
    created: minute(account.createdAt),
    teams: account.teams.map(({ slug, role }) => `${slug} (${role})`).join(", "),
  });
}

export async function renameUser(context: OperatorContext, user: string, about: { name: string; options: AccountOptions }): Promise<void> {
  const client = await openAccounts(context, about.options);
  const { userID } = await findUser(client, user);
  const renamed = await client.call<User>("PATCH", `/admin/users/${userID}`, { body: { name: about.name } });
  if (about.options.json) printJson(renamed);
  note("The user has the new name.");
}

export async function deleteUser(context: OperatorContext, name: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { userID } = await findUser(client, name);
  await client.call("DELETE", `/admin/users/${userID}`);
  note("The user is deleted, with memberships and tokens.");
}

export async function listTokens(context: OperatorContext, name: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { userID } = await findUser(client, name);
  printList(await client.call<readonly Token[]>("GET", `/admin/users/${userID}/access-tokens`), {
    ...options,
    columns: ["NAME", "TOKEN", "SCOPES", "LAST USED", "EXPIRES", "ID"],
    row: ({ name, mask, scopes, lastUsed, expiresAt, id }) => [
      name,
      `${mask.prefix}${mask.maskedValuePrefix}…${mask.maskedValueSuffix}`,
      scopes?.join(",") ?? "*",
      minute(lastUsed),
      minute(expiresAt),
      id,
    ],
    none: "The user has no access tokens.",
  });
}

export async function createToken(
  context: OperatorContext,
  user: string,
  about: { name: string; options: AccountOptions & { expires?: string; scope?: readonly string[] } },
): Promise<void> {
  const { name, options } = about;
  const client = await openAccounts(context, options);
  const { userID } = await findUser(client, user);
  const body = {
    name,
    ...(options.expires === undefined ? {} : { expiresAt: options.expires }),
    ...(options.scope === undefined ? {} : { scopes: options.scope }),
  };
  const made = await client.call<Token & { token: string }>("POST", `/admin/users/${userID}/access-tokens`, { body });
  printMade({ value: made.token, about: "The token is shown only now.", whole: made }, options);
}

export async function deleteToken(context: OperatorContext, user: string, about: { id: string; options: AccountOptions }): Promise<void> {
  const client = await openAccounts(context, about.options);
  const { userID } = await findUser(client, user);
  await client.call("DELETE", `/admin/users/${userID}/access-tokens/${encodeURIComponent(about.id)}`);
  note("The token is deleted. No process accepts it any more.");
}

import { type AccountOptions, findTeam, findUser, openAccounts } from "../accounts/accounts-client.ts";
import { minute, note, printJson, printList, printMade } from "../accounts/print.ts";
import type { OperatorContext } from "../context.ts";

export interface Member {
  readonly userID: string;
  readonly name: string;
  readonly email: string | null;
  readonly role: string;
  readonly since?: string;
}

interface Invitation {
  readonly invitationID: string;
  readonly email: string | null;
  readonly role: string;
  readonly expiresAt: string;
}

export async function listMembers(context: OperatorContext, team: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, team);
  printList(await client.call<readonly Member[]>("GET", `/teams/${teamID}/members`), {
    ...options,
    columns: ["NAME", "EMAIL", "ROLE", "SINCE", "ID"],
    row: ({ name, email, role, since, userID }) => [name, email ?? "-", role, minute(since), userID],
    none: "The team has no members.",
  });
}

export async function setMember(
  context: OperatorContext,
  team: string,
  about: { user: string; role: string; options: AccountOptions },
): Promise<void> {
  const client = await openAccounts(context, about.options);
  const [{ teamID }, { userID }] = await Promise.all([findTeam(client, team), findUser(client, about.user)]);
  const member = await client.call<Member>("PUT", `/teams/${teamID}/members/${userID}`, { body: { role: about.role } });
  if (about.options.json) printJson(member);
  note(`${member.name} is a member of the team with the role ${member.role}.`);
}

export async function removeMember(
  context: OperatorContext,
  team: string,
  about: { user: string; options: AccountOptions & { deleteKeys?: boolean } },
): Promise<void> {
  const client = await openAccounts(context, about.options);
  const [{ teamID }, { userID, name }] = await Promise.all([findTeam(client, team), findUser(client, about.user)]);
  await client.call("DELETE", `/teams/${teamID}/members/${userID}${about.options.deleteKeys ? "?deleteKeys=true" : ""}`);
  note(`${name} is no member of the team any more. No process accepts the user's credentials for it.`);
}

export async function listInvitations(context: OperatorContext, team: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, team);
  printList(await client.call<readonly Invitation[]>("GET", `/teams/${teamID}/invitations`), {
    ...options,
    columns: ["EMAIL", "ROLE", "EXPIRES", "ID"],
    row: ({ email, role, expiresAt, invitationID }) => [email ?? "-", role, minute(expiresAt), invitationID],
    none: "The team has no open invitations.",
  });
}

export async function invite(
  context: OperatorContext,
  team: string,
  about: { role: string; options: AccountOptions & { email?: string; expiresIn?: number } },
): Promise<void> {
  const { role, options } = about;
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, team);
  const { email, expiresIn } = options;
  const body = { role, ...(email === undefined ? {} : { email }), ...(expiresIn === undefined ? {} : { expiresIn }) };
  const made = await client.call<Invitation & { token: string }>("POST", `/teams/${teamID}/invitations`, { body });
  const until = minute(made.expiresAt);
  printMade(
    { value: made.token, about: `Pass the token on. It is shown only now, works once, and until ${until} UTC.`, whole: made },
    options,
  );
}

export async function withdraw(context: OperatorContext, team: string, about: { id: string; options: AccountOptions }): Promise<void> {
  const client = await openAccounts(context, about.options);
  const { teamID } = await findTeam(client, team);
  await client.call("DELETE", `/teams/${teamID}/invitations/${encodeURIComponent(about.id)}`);
  note("The invitation is withdrawn.");
}

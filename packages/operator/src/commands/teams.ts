import { type AccountOptions, findTeam, openAccounts, type Team } from "../accounts/accounts-client.ts";
import { minute, note, printFields, printJson, printList, printMade } from "../accounts/print.ts";
import type { OperatorContext } from "../context.ts";
import { type TeamLimits, usedLimits } from "./team-limits.ts";
import type { Member } from "./team-members.ts";

interface Standing {
  readonly standing: "active" | "blocked" | "banned";
  readonly reason?: string;
}

export async function listTeams(context: OperatorContext, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const teams = await client.list<Team>("/admin/teams");
  const running = await client.call<Readonly<Record<string, number>>>("GET", "/admin/sandboxes/running-counts");
  printList(
    teams.map((team) => ({ ...team, runningSandboxes: running[team.teamID] ?? 0 })),
    {
      ...options,
      columns: ["SLUG", "NAME", "RUNNING", "CREATED", "ID"],
      row: ({ slug, name, runningSandboxes, createdAt, teamID }) => [slug, name, String(runningSandboxes), minute(createdAt), teamID],
      none: "There are no teams.",
    },
  );
}

export async function createTeam(context: OperatorContext, slug: string, options: AccountOptions & { name?: string }): Promise<void> {
  const client = await openAccounts(context, options);
  const team = await client.call<Team>("POST", "/admin/teams", { body: { slug, name: options.name ?? slug } });
  printMade({ value: team.teamID, about: "The team has no members and no keys yet.", whole: team }, options);
}

export async function showTeam(context: OperatorContext, name: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const team = await findTeam(client, name);
  const [members, limits, standing] = await Promise.all([
    client.call<readonly Member[]>("GET", `/teams/${team.teamID}/members`),
    client.call<TeamLimits>("GET", `/admin/teams/${team.teamID}/limits`),
    client.call<Standing>("GET", `/admin/teams/${team.teamID}/standing`),
  ]);
  if (options.json) return printJson({ ...team, standing: standing.standing, reason: standing.reason, members, limits });
  printFields({
    id: team.teamID,
    slug: team.slug,
    name: team.name,
    created: minute(team.createdAt),
    standing: standing.standing + (standing.reason === undefined ? "" : `: ${standing.reason}`),
    members: members.map((member) => `${member.email ?? member.name} (${member.role})`).join(", "),
    tier: limits.tier,
    ...usedLimits(limits),
  });
}

export async function renameTeam(context: OperatorContext, team: string, about: { name: string; options: AccountOptions }): Promise<void> {
  const client = await openAccounts(context, about.options);
  const { teamID } = await findTeam(client, team);
  const renamed = await client.call<Team>("PATCH", `/teams/${teamID}`, { body: { name: about.name } });
  if (about.options.json) printJson(renamed);
  note("The team has the new name. Its slug stays.");
}

export async function deleteTeam(context: OperatorContext, name: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, name);
  await client.call("DELETE", `/admin/teams/${teamID}`);
  note("The team is deleted, with its keys, invitations and secrets.");
}

const STANDINGS = {
  active: "The team may do everything again.",
  blocked: "The team may only read and delete. Its sandboxes run on.",
  banned: "Every request of the team is refused. Its sandboxes run on until you kill them with ./skerry teams kill.",
} as const;

export async function setStanding(
  context: OperatorContext,
  team: string,
  about: { standing: Standing["standing"]; options: AccountOptions & { reason?: string } },
): Promise<void> {
  const { standing, options } = about;
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, team);
  const body = { standing, ...(options.reason === undefined ? {} : { reason: options.reason }) };
  const set = await client.call<Standing>("PUT", `/admin/teams/${teamID}/standing`, { body });
  if (options.json) printJson(set);
  note(STANDINGS[standing]);
}

export async function killSandboxes(context: OperatorContext, team: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, team);
  const done = await client.call<{ killedCount: number; failedCount: number }>("POST", `/admin/teams/${teamID}/sandboxes/kill`);
  if (options.json) printJson(done);
  note(`${done.killedCount} sandboxes were killed. Paused ones stay.`);
  if (done.failedCount > 0) note(`${done.failedCount} could not be killed yet; the platform retries.`);
}

export async function cancelBuilds(context: OperatorContext, team: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const { teamID } = await findTeam(client, team);
  const done = await client.call<{ cancelledCount: number; failedCount: number }>("POST", `/admin/teams/${teamID}/builds/cancel`);
  if (options.json) printJson(done);
  note(`${done.cancelledCount} builds were cancelled.`);
  if (done.failedCount > 0) note(`${done.failedCount} could not be cancelled. Try again.`);
}

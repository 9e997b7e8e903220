// ./skerry users, teams and keys: what the admin API does, for shells and scripts.

import { DEFAULT_DATA_DIR } from "@skerry/setup/folder";
import { type Command, Option } from "commander";
import { addLimit, addPair, addValue, readExpiry, readSeconds } from "./accounts/option-values.ts";
import type { OperatorContext } from "./context.ts";

const TEAM = "slug or id of the team";
const USER = "e-mail address or id of the user";
const ROLES = ["owner", "admin", "developer", "viewer"];
const OUTPUT = "\n\nIds and secrets of what is made go to stdout, alone on a line, and sentences to stderr. See docs/teams.md.";

export function addAccountCommands(program: Command, context: OperatorContext): void {
  addUserCommands(program, context);
  const teams = addTeamCommands(program, context);
  addMemberCommands(teams, context);
  addLimitCommands(teams, context);
  addKeyCommands(program, context);
}

/** A command of the group, with the options that all of them have. */
function commandOf(group: Command, name: string, summary: string): Command {
  return withOutput(
    group
      .command(name)
      .summary(summary)
      .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`),
  );
}

function withOutput(command: Command): Command {
  return command
    .option("--json", "print JSON")
    .addOption(new Option("--data <dir>", `data folder (default: SKERRY_DATA, or ${DEFAULT_DATA_DIR})`));
}

function addUserCommands(program: Command, context: OperatorContext): void {
  const users = withOutput(program.command("users"))
    .summary("list, make and delete users and their access tokens")
    .description(`Without a command, lists the users, newest first.${OUTPUT}`)
    .enablePositionalOptions()
    .action(async (options) => (await import("./commands/users.ts")).listUsers(context, options));
  commandOf(users, "create", "make a user, and print the id")
    .argument("<name>", "name of the user, for people")
    .option("--email <address>", "address of the user, by which commands can name the user")
    .action(async (name, options) => (await import("./commands/users.ts")).createUser(context, name, options));
  commandOf(users, "show", "show a user, with teams and roles")
    .argument("<user>", USER)
    .action(async (user, options) => (await import("./commands/users.ts")).showUser(context, user, options));
  commandOf(users, "rename", "give a user another name")
    .argument("<user>", USER)
    .argument("<name>", "the new name")
    .action(async (user, name, options) => (await import("./commands/users.ts")).renameUser(context, user, { name, options }));
  commandOf(users, "delete", "delete a user, with memberships and tokens")
    .argument("<user>", USER)
    .action(async (user, options) => (await import("./commands/users.ts")).deleteUser(context, user, options));
  commandOf(users, "tokens", "list the access tokens of a user, masked")
    .argument("<user>", USER)
    .action(async (user, options) => (await import("./commands/users.ts")).listTokens(context, user, options));
  withLimits(commandOf(users, "create-token", "make an access token for a user, and print it"))
    .argument("<user>", USER)
    .argument("<name>", "name of the token, for people")
    .action(async (user, name, options) => (await import("./commands/users.ts")).createToken(context, user, { name, options }));
  commandOf(users, "delete-token", "delete an access token of a user")
    .argument("<user>", USER)
    .argument("<id>", "id of the token")
    .action(async (user, id, options) => (await import("./commands/users.ts")).deleteToken(context, user, { id, options }));
}

/** What keys and tokens can be limited by. */
function withLimits(command: Command): Command {
  return command
    .option("--scope <scope>", "what it may do, repeatable, such as sandboxes:read or sandboxes:* (default: everything)", addValue)
    .option("--expires <time>", "when it stops working: 2030-01-01T00:00:00Z, or 90d, 12h or 30m from now (default: never)", readExpiry);
}

function addTeamCommands(program: Command, context: OperatorContext): Command {
  const teams = withOutput(program.command("teams"))
    .summary("list, make and delete teams, their members and their limits")
    .description(`Without a command, lists the teams, newest first, with their running sandboxes.${OUTPUT}`)
    .enablePositionalOptions()
    .action(async (options) => (await import("./commands/teams.ts")).listTeams(context, options));
  commandOf(teams, "create", "make a team, and print its id")
    .argument("<slug>", "namespace of the team's templates, which never changes: up to 63 characters of a-z, 0-9 and -")
    .option("--name <name>", "name of the team, for people (default: the slug)")
    .action(async (slug, options) => (await import("./commands/teams.ts")).createTeam(context, slug, options));
  commandOf(teams, "show", "show a team, with members, limits and standing")
    .argument("<team>", TEAM)
    .action(async (team, options) => (await import("./commands/teams.ts")).showTeam(context, team, options));
  commandOf(teams, "rename", "give a team another name; its slug stays")
    .argument("<team>", TEAM)
    .argument("<name>", "the new name")
    .action(async (team, name, options) => (await import("./commands/teams.ts")).renameTeam(context, team, { name, options }));
  commandOf(teams, "delete", "delete a team that has no sandboxes, templates or snapshots")
    .argument("<team>", TEAM)
    .action(async (team, options) => (await import("./commands/teams.ts")).deleteTeam(context, team, options));
  const standings = [
    ["block", "blocked", "let a team only read and delete"],
    ["ban", "banned", "refuse every request of a team"],
    ["activate", "active", "let a team do everything again"],
  ] as const;
  for (const [name, standing, summary] of standings) {
    const command = commandOf(teams, name, summary).argument("<team>", TEAM);
    if (name !== "activate") command.option("--reason <text>", "the reason; a blocked team reads it");
    command.action(async (team, options) => (await import("./commands/teams.ts")).setStanding(context, team, { standing, options }));
  }
  commandOf(teams, "kill", "kill the running sandboxes of a team; paused ones stay")
    .argument("<team>", TEAM)
    .action(async (team, options) => (await import("./commands/teams.ts")).killSandboxes(context, team, options));
  commandOf(teams, "cancel-builds", "cancel all builds of a team")
    .argument("<team>", TEAM)
    .action(async (team, options) => (await import("./commands/teams.ts")).cancelBuilds(context, team, options));
  return teams;
}

function addMemberCommands(teams: Command, context: OperatorContext): void {
  commandOf(teams, "members", "list the members of a team, with roles")
    .argument("<team>", TEAM)
    .action(async (team, options) => (await import("./commands/team-members.ts")).listMembers(context, team, options));
  commandOf(teams, "set-member", "make a user a member of a team, or give a member another role")
    .argument("<team>", TEAM)
    .argument("<user>", USER)
    .addArgument(teams.createArgument("<role>", "role in the team").choices(ROLES))
    .action(async (team, user, role, options) =>
      (await import("./commands/team-members.ts")).setMember(context, team, { user, role, options }),
    );
  commandOf(teams, "remove-member", "remove a member from a team")
    .argument("<team>", TEAM)
    .argument("<user>", USER)
    .option("--delete-keys", "also delete the API keys that the member made for the team")
    .action(async (team, user, options) => (await import("./commands/team-members.ts")).removeMember(context, team, { user, options }));
  commandOf(teams, "invitations", "list the open invitations of a team")
    .argument("<team>", TEAM)
    .action(async (team, options) => (await import("./commands/team-members.ts")).listInvitations(context, team, options));
  commandOf(teams, "invite", "make an invitation to a team, and print its token")
    .argument("<team>", TEAM)
    .addArgument(teams.createArgument("<role>", "role of whoever accepts").choices(ROLES))
    .option("--email <address>", "address of the invited person, for people; the platform sends no mail")
    .option("--expires-in <time>", "how long it may be accepted: 7d, 12h or 30m (default: 7d)", readSeconds)
    .action(async (team, role, options) => (await import("./commands/team-members.ts")).invite(context, team, { role, options }));
  commandOf(teams, "withdraw", "withdraw an invitation")
    .argument("<team>", TEAM)
    .argument("<id>", "id of the invitation")
    .action(async (team, id, options) => (await import("./commands/team-members.ts")).withdraw(context, team, { id, options }));
}

function addLimitCommands(teams: Command, context: OperatorContext): void {
  const setOption = () => new Option("--set <limit=number>", "a limit, repeatable, such as sandboxes=20 or cpu=none").argParser(addLimit);
  commandOf(teams, "limits", "show the limits of a team and what it has, and change them")
    .argument("<team>", TEAM)
    .option("--tier <tier>", "give the team this tier")
    .addOption(setOption())
    .option("--unset <limit>", "let the tier decide about this limit again, repeatable", addValue)
    .action(async (team, options) => (await import("./commands/team-limits.ts")).teamLimits(context, team, options));
  commandOf(teams, "tiers", "list the tiers").action(async (options) =>
    (await import("./commands/team-limits.ts")).listTiers(context, options),
  );
  commandOf(teams, "set-tier", "make a tier, or replace all its limits")
    .argument("<tier>", "name of the tier")
    .addOption(setOption())
    .action(async (tier, options) => (await import("./commands/team-limits.ts")).setTier(context, tier, options));
  commandOf(teams, "delete-tier", "delete a tier that no team has")
    .argument("<tier>", "name of the tier")
    .action(async (tier, options) => (await import("./commands/team-limits.ts")).deleteTier(context, tier, options));
}

function addKeyCommands(program: Command, context: OperatorContext): void {
  const withTeam = (command: Command) => command.option("--team <team>", `${TEAM} (default: default, the team of the first start)`);
  const keys = withTeam(withOutput(program.command("keys")))
    .summary("list, make and delete the API keys of a team")
    .description(`Without a command, lists the API keys of a team, oldest first, masked.${OUTPUT}`)
    .enablePositionalOptions()
    .action(async (options) => (await import("./commands/keys.ts")).listKeys(context, options));
  withLimits(withTeam(commandOf(keys, "create", "make an API key, and print it")))
    .argument("<name>", "name of the key, for people")
    .option("--metadata <key=value>", "only sandboxes with this metadata, repeatable (default: all sandboxes of the team)", addPair)
    .action(async (name, options) => (await import("./commands/keys.ts")).createKey(context, name, options));
  withTeam(commandOf(keys, "rename", "give an API key another name"))
    .argument("<id>", "id of the key")
    .argument("<name>", "the new name")
    .action(async (id, name, options) => (await import("./commands/keys.ts")).renameKey(context, id, { name, options }));
  withTeam(commandOf(keys, "delete", "delete an API key"))
    .argument("<id>", "id of the key")
    .action(async (id, options) => (await import("./commands/keys.ts")).deleteKey(context, id, options));
}

import { OperatorError } from "@skerry/setup/folder";
import { type AccountOptions, findTeam, openAccounts } from "../accounts/accounts-client.ts";
import { note, printFields, printJson, printList } from "../accounts/print.ts";
import type { OperatorContext } from "../context.ts";

type Limits = Readonly<Record<string, number | null>>;

export interface TeamLimits {
  readonly tier: string;
  readonly overrides: Limits;
  readonly limits: Limits;
  readonly use: Readonly<Record<string, number>>;
}

interface Tier {
  readonly name: string;
  readonly set: Limits;
  readonly limits: Limits;
}

export interface SetLimitsOptions extends AccountOptions {
  readonly tier?: string;
  readonly set?: Limits;
  readonly unset?: readonly string[];
}

/** Shows the limits of a team, after it has changed those that the options name. */
export async function teamLimits(context: OperatorContext, team: string, options: SetLimitsOptions): Promise<void> {
  const client = await openAccounts(context, options);
  const path = `/admin/teams/${(await findTeam(client, team)).teamID}/limits`;
  const { tier, set = {}, unset = [] } = options;
  const before = await client.call<TeamLimits>("GET", path);
  const isChange = tier !== undefined || Object.keys(set).length > 0 || unset.length > 0;
  const overrides = { ...without(before, unset), ...set };
  const limits = isChange ? await client.call<TeamLimits>("PUT", path, { body: { tier: tier ?? before.tier, overrides } }) : before;
  if (options.json) return printJson(limits);
  printFields({ tier: limits.tier, ...usedLimits(limits) });
}

function without({ overrides }: TeamLimits, names: readonly string[]): Limits {
  const unknown = names.find((name) => !(name in overrides));
  if (unknown !== undefined) {
    throw new OperatorError(`the team has no own limit "${unknown}"`, {
      hints: [`It has: ${Object.keys(overrides).join(", ") || "none"}.`],
    });
  }
  return Object.fromEntries(Object.entries(overrides).filter(([name]) => !names.includes(name)));
}

/** Each limit with what the team has of it, and whether the limit is the team's own. */
export function usedLimits({ limits, overrides, use }: TeamLimits): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(limits).map(([name, limit]) => {
      const used = use[name] === undefined ? "" : `${use[name]} of `;
      return [name, `${used}${shown(limit)}${name in overrides ? " (the team's own)" : ""}`];
    }),
  );
}

export async function listTiers(context: OperatorContext, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  printList(await client.call<readonly Tier[]>("GET", "/admin/tiers"), {
    ...options,
    columns: ["TIER", "LIMITS"],
    row: ({ name, set, limits }) => [name, describe(name === "default" ? limits : set)],
    none: "There are no tiers.",
  });
}

/** Adds a tier, or replaces all its limits. */
export async function setTier(context: OperatorContext, name: string, options: AccountOptions & { set?: Limits }): Promise<void> {
  const client = await openAccounts(context, options);
  const tier = await client.call<Tier>("PUT", `/admin/tiers/${encodeURIComponent(name)}`, { body: { limits: options.set ?? {} } });
  if (options.json) printJson(tier);
  note(`The tier ${tier.name} sets ${describe(tier.set)}. Give it to a team with ./skerry teams limits TEAM --tier ${tier.name}.`);
}

export async function deleteTier(context: OperatorContext, name: string, options: AccountOptions): Promise<void> {
  const client = await openAccounts(context, options);
  await client.call("DELETE", `/admin/tiers/${encodeURIComponent(name)}`);
  note("The tier is deleted.");
}

function describe(limits: Limits): string {
  return (
    Object.entries(limits)
      .map(([name, limit]) => `${name}=${limit ?? "none"}`)
      .join(" ") || "no limits"
  );
}

function shown(limit: number | null): string {
  return limit === null ? "no limit" : String(limit);
}

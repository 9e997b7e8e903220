import { type AccountOptions, FIRST_TEAM, findTeam, openAccounts } from "../accounts/accounts-client.ts";
import { minute, note, printList, printMade } from "../accounts/print.ts";
import type { OperatorContext } from "../context.ts";
import type { PlatformClient } from "../templates/platform-client.ts";

/** `team`: slug or id. Without it, the team of the first start. */
export interface KeyOptions extends AccountOptions {
  readonly team?: string;
}

export interface NewKeyOptions extends KeyOptions {
  readonly expires?: string;
  readonly scope?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
}

interface Key {
  readonly id: string;
  readonly name: string;
  readonly mask: { readonly prefix: string; readonly maskedValuePrefix: string; readonly maskedValueSuffix: string };
  readonly lastUsed?: string;
  readonly expiresAt?: string;
  readonly scopes?: readonly string[];
  readonly sandboxMetadata?: Readonly<Record<string, string>>;
}

async function open(context: OperatorContext, options: KeyOptions): Promise<{ client: PlatformClient; teamId: string }> {
  const client = await openAccounts(context, options);
  return { client, teamId: (await findTeam(client, options.team ?? FIRST_TEAM)).teamID };
}

export async function listKeys(context: OperatorContext, options: KeyOptions): Promise<void> {
  const { client, teamId } = await open(context, options);
  printList(await client.call<readonly Key[]>("GET", "/api-keys", { teamId }), {
    ...options,
    columns: ["NAME", "KEY", "SCOPES", "SANDBOXES", "LAST USED", "EXPIRES", "ID"],
    row: ({ name, mask, scopes, sandboxMetadata, lastUsed, expiresAt, id }) => [
      name,
      `${mask.prefix}${mask.maskedValuePrefix}…${mask.maskedValueSuffix}`,
      scopes?.join(",") ?? "*",
      sandboxMetadata === undefined ? "all" : new URLSearchParams(sandboxMetadata).toString(),
      minute(lastUsed),
      minute(expiresAt),
      id,
    ],
    none: "The team has no API keys.",
  });
}

export async function createKey(context: OperatorContext, name: string, options: NewKeyOptions): Promise<void> {
  const { client, teamId } = await open(context, options);
  const { expires, scope, metadata } = options;
  const body = {
    name,
    ...(expires === undefined ? {} : { expiresAt: expires }),
    ...(scope === undefined ? {} : { scopes: scope }),
    ...(metadata === undefined ? {} : { sandboxMetadata: metadata }),
  };
  const made = await client.call<Key & { key: string }>("POST", `/admin/teams/${teamId}/api-keys`, { body });
  printMade({ value: made.key, about: "The key is shown only now.", whole: made }, options);
}

export async function renameKey(context: OperatorContext, id: string, about: { name: string; options: KeyOptions }): Promise<void> {
  const { client, teamId } = await open(context, about.options);
  await client.call("PATCH", `/api-keys/${encodeURIComponent(id)}`, { teamId, body: { name: about.name } });
  note("The key has the new name.");
}

export async function deleteKey(context: OperatorContext, id: string, options: KeyOptions): Promise<void> {
  const { client, teamId } = await open(context, options);
  await client.call("DELETE", `/admin/teams/${teamId}/api-keys/${encodeURIComponent(id)}`);
  note("The key is deleted. No process accepts it any more.");
}

import type { OperatorContext } from "../context.ts";
import { dataFolder } from "../data-folder.ts";
import { OperatorError } from "../operator-error.ts";
import { readSecrets, type Secrets } from "../secrets.ts";
import { clientUrls, dataDirOf, type PlatformSettings, readSettings } from "../settings.ts";

/** Prints `export` lines that make any E2B client talk to this platform. */
export async function env(context: OperatorContext, options: { data?: string; all?: boolean; json?: boolean }): Promise<void> {
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const secrets = await readSecrets(folder);
  const settings = await readSettings(folder);
  if (!settings) {
    throw new OperatorError(`the platform of ${folder.root} was never started`, { exit: "notRunning", mend: ["Start it: ./skerry up"] });
  }
  const variables = clientVariables(secrets, settings, options.all ?? false);
  const text = options.json
    ? JSON.stringify(variables, null, 2)
    : Object.entries(variables)
        .map(([name, value]) => `export ${name}=${shellQuote(value)}`)
        .join("\n");
  process.stdout.write(`${text}\n`);
}

export function clientVariables(secrets: Secrets, settings: PlatformSettings, all: boolean): Record<string, string> {
  const { api, edge } = clientUrls(settings);
  return {
    E2B_API_KEY: secrets.apiKey,
    E2B_API_URL: api,
    E2B_SANDBOX_URL: edge,
    E2B_DOMAIN: settings.domain,
    ...(all && {
      E2B_ACCESS_TOKEN: secrets.accessToken,
      E2B_TEAM_ID: secrets.teamId,
      E2B_USER_ID: secrets.userId,
      SKERRY_ADMIN_TOKEN: secrets.adminToken,
    }),
  };
}

/** Quoted so that any POSIX shell reads exactly this value. */
export function shellQuote(value: string): string {
  return /^[A-Za-z0-9_.:/@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

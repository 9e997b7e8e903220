import type { Secrets } from "./secrets.ts";
import { clientUrls, type PlatformSettings } from "./settings.ts";

/** The environment variables of an E2B client. With `all`, also the credentials for administration. */
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

/** Quotes a value for POSIX shells. */
export function shellQuote(value: string): string {
  return /^[A-Za-z0-9_.:/@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

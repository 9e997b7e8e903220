import type { Secrets } from "./secrets.ts";
import { clientUrls, type PlatformSettings } from "./settings.ts";
import type { LocalTlsFiles } from "./tls-files.ts";

/** Variables for clients of a platform without TLS. With TLS, clients derive both addresses from the domain. */
export const URL_VARIABLES = ["E2B_API_URL", "E2B_SANDBOX_URL", "E2B_VOLUME_API_URL"] as const;

export interface ClientVariableOptions {
  readonly secrets: Secrets;
  readonly settings: PlatformSettings;
  /** Where clients find the authority that signed the platform's certificate, if it is our own. */
  readonly tlsFiles: LocalTlsFiles;
  /** Also the credentials for administration. */
  readonly all: boolean;
}

/** The environment variables of an E2B client. */
export function clientVariables({ secrets, settings, tlsFiles, all }: ClientVariableOptions): Record<string, string> {
  const { api, edge } = clientUrls(settings);
  return {
    E2B_API_KEY: secrets.apiKey,
    ...(!settings.tls && { E2B_API_URL: api, E2B_SANDBOX_URL: edge, E2B_VOLUME_API_URL: api }),
    E2B_DOMAIN: settings.domain,
    // SSL_CERT_FILE replaces the authorities that a program knows, so the bundle has those of the host too.
    ...(settings.tls &&
      !settings.tls.certFile &&
      !settings.tls.acme && { NODE_EXTRA_CA_CERTS: tlsFiles.ca, SSL_CERT_FILE: tlsFiles.bundle }),
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

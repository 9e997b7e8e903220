// What the edge needs for TLS: its certificate, and the address of the API for requests to `https://api.{domain}`.

import type { Logger } from "@skerry/base";
import { type ApiRoute, CertificateFiles, type TlsConfig } from "@skerry/edge";
import { type AcmeSettings, dataFolder, localTlsFiles, takeSetupLock } from "@skerry/setup/folder";
import type { ServeConfig } from "./config.ts";

/** Interval between two looks whether the data folder's own certificate is due for renewal. */
const RENEW_LOOK_MS = 6 * 3_600_000;

export interface EdgeTls {
  readonly tls?: TlsConfig;
  readonly api?: ApiRoute;
}

export async function openEdgeTls(config: ServeConfig, stack: AsyncDisposableStack, logger: Logger): Promise<EdgeTls> {
  if (!config.tls) return {};
  const { port, acme, ...files } = config.tls;
  if (acme) stack.use(await keepCertificate(config, acme, logger));
  const certificate = stack.use(await CertificateFiles.open(files, logger));
  if (files.certFile === localTlsFiles(dataFolder(config.dataDir)).cert) {
    const timer = setInterval(() => renew(config, logger), RENEW_LOOK_MS).unref();
    stack.defer(() => clearInterval(timer));
  }
  const api = apiRouteOf(config);
  return { tls: { port, certificate }, ...(api && { api }) };
}

async function keepCertificate({ dataDir, domain, site }: ServeConfig, settings: AcmeSettings, logger: Logger): Promise<AsyncDisposable> {
  const { keepAcmeCertificate } = await import("@skerry/setup/acme");
  const { caFile, httpsProxy, noProxy } = site;
  const proxy = httpsProxy && { HTTPS_PROXY: httpsProxy.reveal(), ...(noProxy !== undefined && { NO_PROXY: noProxy }) };
  return await keepAcmeCertificate({ folder: dataFolder(dataDir), settings, domain, network: { caFile, proxy }, logger });
}

function apiRouteOf({ roles, listen, apiPort, domain, edgeApiUrl }: ServeConfig): ApiRoute | undefined {
  if (edgeApiUrl !== undefined) {
    const url = new URL(edgeApiUrl);
    return { domain, host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || 80) };
  }
  if (!roles.has("api")) return undefined;
  const any: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  return { domain, host: any[listen] ?? listen, port: apiPort };
}

/** The edge notices the new files by itself. */
async function renew({ dataDir, domain }: ServeConfig, logger: Logger): Promise<void> {
  try {
    const folder = dataFolder(dataDir);
    const { ensureLocalCertificate } = await import("@skerry/setup");
    await using _lock = await takeSetupLock(folder.lockFile);
    const { made, validTo } = await ensureLocalCertificate(folder, domain);
    if (made !== "nothing") logger.info({ made, valid_to: validTo }, "the TLS certificate was renewed");
  } catch (err) {
    logger.warn({ err }, "the TLS certificate could not be looked at; the next look is in six hours");
  }
}

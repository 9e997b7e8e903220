import { isIP } from "node:net";
import { resolve } from "node:path";
import { OperatorError } from "../operator-error.ts";
import { type AcmeSettings, readAcmeSettings } from "./acme-settings.ts";
import { type DataFolder, DEFAULT_DATA_DIR } from "./data-folder.ts";
import { readJsonFile } from "./json-file.ts";
import { localTlsFiles } from "./tls-files.ts";

export type RuntimeName = "gvisor" | "runc";

/** settings.json: how the platform listens and runs. `up` and `restart` write it; `env`, `status` and the next start read it. */
export interface PlatformSettings {
  readonly runtime: RuntimeName;
  readonly listen: string;
  readonly apiPort: number;
  readonly edgePort: number;
  readonly domain: string;
  /** Absent: no TLS. */
  readonly tls?: TlsSettings;
}

/** Without files and ACME, the certificate is one of the data folder's own authority. */
export interface TlsSettings {
  readonly port: number;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly acme?: AcmeSettings;
}

/** Options of several commands, as commander passes them. */
export interface SettingOptions {
  readonly runtime?: string;
  readonly listen?: string;
  readonly apiPort?: string;
  readonly edgePort?: string;
  readonly domain?: string;
  readonly tls?: boolean;
  readonly tlsPort?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly acme?: string;
  readonly acmeContact?: string;
  readonly acmeHook?: string;
  readonly acmeAgree?: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function dataDirOf(option: string | undefined, env: Environment): string {
  return option ?? (env.SKERRY_DATA || DEFAULT_DATA_DIR);
}

export const readSettings = (folder: DataFolder) => readJsonFile<PlatformSettings>(folder.settingsFile);

/** Takes each setting from the command line, the environment, the last start or the defaults, in this order. */
export function resolveSettings(options: SettingOptions, env: Environment, last: PlatformSettings | undefined): PlatformSettings {
  const pick = (option: string | undefined, name: string) => option ?? (env[name] || undefined);
  const runtime = pick(options.runtime, "SKERRY_RUNTIME") ?? last?.runtime ?? "gvisor";
  if (runtime !== "gvisor" && runtime !== "runc") throw usage(`invalid runtime "${runtime}": use gvisor or runc`);
  const listen = pick(options.listen, "SKERRY_LISTEN") ?? last?.listen ?? "127.0.0.1";
  if (isIP(listen) === 0) throw usage(`invalid address "${listen}": --listen takes an IP address such as 127.0.0.1, 0.0.0.0 or ::1`);
  const apiPort = parsePort("--api-port", pick(options.apiPort, "SKERRY_API_PORT")) ?? last?.apiPort ?? 4680;
  const edgePort = parsePort("--edge-port", pick(options.edgePort, "SKERRY_EDGE_PORT")) ?? last?.edgePort ?? 4681;
  if (apiPort === edgePort) throw usage(`the API and the edge can't both use port ${apiPort}`);
  const tls = resolveTls(options, env, last);
  if (tls && [apiPort, edgePort].includes(tls.port)) throw usage(`the TLS port ${tls.port} is the port of the API or of the edge`);
  const usual = defaultDomain(edgePort, tls);
  // A domain that was only the default follows the ports.
  const isChosen = last && last.edgePort === edgePort && last.domain !== defaultDomain(last.edgePort, last.tls);
  const domain = pick(options.domain, "SKERRY_DOMAIN") ?? (isChosen ? last.domain : usual);
  return { runtime, listen, apiPort, edgePort, domain, ...(tls && { tls: withAcme(tls, options, env, domain) }) };
}

/** Clients refuse a certificate for *.localhost, so with TLS the domain is one level deeper. */
const defaultDomain = (edgePort: number, tls: TlsSettings | undefined) => (tls ? `skerry.localhost:${tls.port}` : `localhost:${edgePort}`);

function resolveTls(options: SettingOptions, env: Environment, last: PlatformSettings | undefined): TlsSettings | undefined {
  const certFile = options.tlsCert ?? (env.SKERRY_TLS_CERT || undefined);
  const keyFile = options.tlsKey ?? (env.SKERRY_TLS_KEY || undefined);
  if (certFile === undefined && keyFile !== undefined) throw usage("a key needs its certificate: --tls-cert");
  if (options.tls === false) return undefined;
  const portText = options.tlsPort ?? (env.SKERRY_TLS_PORT || undefined);
  const port = parsePort("--tls-port", portText) ?? last?.tls?.port ?? 4443;
  // A file may contain the certificate and its key.
  if (certFile !== undefined) return { port, certFile: resolve(certFile), keyFile: resolve(keyFile ?? certFile) };
  if (last?.tls) {
    // Another source of the certificate replaces files from elsewhere.
    return options.tls || options.acme !== undefined
      ? { port, ...(last.tls.acme && !options.tls && { acme: last.tls.acme }) }
      : { ...last.tls, port };
  }
  if (options.tls || options.acme !== undefined || env.SKERRY_ACME_DIRECTORY) return { port };
  if (options.tlsPort !== undefined) throw usage("--tls-port needs --tls, --tls-cert or --acme");
  return undefined;
}

/** Replaces what the options and the environment name. An own authority and files from elsewhere take the place of ACME. */
function withAcme(tls: TlsSettings, options: SettingOptions, env: Environment, domain: string): TlsSettings {
  const last = options.tls ? undefined : tls.acme;
  const { acme: _, ...rest } = tls;
  const directory = options.acme ?? (env.SKERRY_ACME_DIRECTORY || last?.directory);
  if (directory === undefined) return rest;
  if (tls.certFile !== undefined) throw usage("--acme and --tls-cert exclude each other");
  const input = {
    directory,
    contact: options.acmeContact ?? (env.SKERRY_ACME_CONTACT || last?.contact),
    hook: options.acmeHook ?? (env.SKERRY_ACME_HOOK || last?.hook),
    // An agreement is to the terms of one authority.
    agree: options.acmeAgree === true || env.SKERRY_ACME_AGREE === "yes" || directory === last?.directory,
  };
  const names = { directory: "--acme", contact: "--acme-contact", hook: "--acme-hook", agree: "--acme-agree", domain: "--domain" };
  const problems: string[] = [];
  const acme = readAcmeSettings(input, domain, names, (text) => problems.push(text));
  if (problems.length > 0) throw usage(problems.join("; "));
  return { ...rest, acme };
}

function parsePort(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65535) throw usage(`invalid port "${text}": ${name} takes a number from 1 to 65535`);
  return port;
}

const usage = (message: string) => new OperatorError(message, { exit: "usage" });

/** The environment of `skerry serve`: these settings, and the other SKERRY_ variables of the operator's environment. */
export function serveEnvironment(folder: DataFolder, settings: PlatformSettings, env: Environment): Record<string, string> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[0].startsWith("SKERRY_") && !isOperatorOnly(entry[0]) && entry[1] !== undefined,
  );
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: env.HOME ?? "/root",
    LANG: "C.UTF-8",
    // Compiled code is kept, which makes later starts a third faster.
    NODE_COMPILE_CACHE: folder.compileCacheDir,
    ...Object.fromEntries(passed),
    SKERRY_DATA: folder.root,
    SKERRY_RUNTIME: settings.runtime,
    SKERRY_LISTEN: settings.listen,
    SKERRY_API_PORT: String(settings.apiPort),
    SKERRY_EDGE_PORT: String(settings.edgePort),
    SKERRY_DOMAIN: settings.domain,
    ...tlsEnvironment(folder, settings.tls),
  };
}

function tlsEnvironment(folder: DataFolder, tls: TlsSettings | undefined): Record<string, string> {
  // Empty rather than absent: `up --no-tls` turns off what the operator's environment says.
  const none = { SKERRY_TLS_CERT: "", SKERRY_TLS_KEY: "", SKERRY_ACME_DIRECTORY: "" };
  if (!tls) return none;
  if (tls.acme) {
    const { directory, contact, hook } = tls.acme;
    const acme = { SKERRY_ACME_DIRECTORY: directory, SKERRY_ACME_CONTACT: contact, SKERRY_ACME_HOOK: hook, SKERRY_ACME_AGREE: "yes" };
    return { ...none, SKERRY_TLS_PORT: String(tls.port), ...acme };
  }
  const own = localTlsFiles(folder);
  const { port, certFile = own.cert, keyFile = own.key } = tls;
  return { ...none, SKERRY_TLS_PORT: String(port), SKERRY_TLS_CERT: certFile, SKERRY_TLS_KEY: keyFile };
}

/** Variables of ./skerry itself, which the platform does not know. */
const OPERATOR_ONLY: ReadonlySet<string> = new Set(["SKERRY_BASE_IMAGE", "SKERRY_ADMIN_TOKEN"]);
const isOperatorOnly = (name: string) => OPERATOR_ONLY.has(name) || name.startsWith("SKERRY_TEST_");

/** Addresses at which a client on this host reaches the platform. */
export function clientUrls(settings: PlatformSettings): { api: string; edge: string } {
  const any: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  const address = any[settings.listen] ?? settings.listen;
  const host = isIP(address) === 6 ? `[${address}]` : address;
  return { api: `http://${host}:${settings.apiPort}`, edge: `http://${host}:${settings.edgePort}` };
}

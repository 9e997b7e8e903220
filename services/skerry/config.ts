import { isIP, isIPv6 } from "node:net";
import type { Limits, OidcConfig } from "@skerry/api";
import { ConfigReader, type Secret } from "@skerry/base";
import { type AcmeSettings, acmeFiles, DEFAULT_DATA_DIR, dataFolder, readAcmeSettings } from "@skerry/setup/folder";
import { readSiteSettings, type SiteSettings } from "@skerry/setup/site-network";
import { hostNameOf, isSandboxHost } from "@skerry/wire";
import { type ImagePullSettings, readImagePullSettings } from "./image-settings.ts";
import { readLimits } from "./limit-settings.ts";
import { readOidc } from "./oidc-settings.ts";
import { isPrivateNetwork } from "./private-networks.ts";
import { type MetricsSettings, readMetrics, readTraces, type TraceSettings } from "./telemetry-settings.ts";

export type Role = "api" | "edge" | "node";
const ROLES: readonly Role[] = ["api", "edge", "node"];

export interface ServeConfig {
  readonly dataDir: string;
  readonly roles: ReadonlySet<Role>;
  readonly listen: string;
  readonly apiPort: number;
  readonly edgePort: number;
  readonly nodePort: number;
  /** Address at which edges in other processes reach the node of this process. */
  readonly nodeUrl: string;
  readonly controlPort: number;
  readonly databaseUrl: string | undefined;
  readonly nodes: readonly string[];
  readonly controlUrl: string | undefined;
  readonly runtime: "gvisor" | "runc";
  readonly domain: string;
  readonly advertiseDomain: string | undefined;
  /** Host name of the path form. Undefined: there is none. */
  readonly pathHost: string | undefined;
  /** Addresses and networks of the proxies in front of the edge. */
  readonly trustedProxies: readonly string[];
  /** Undefined: the edge serves plain HTTP only. */
  readonly tls: TlsServeConfig | undefined;
  /** Where the edge reaches the API. Undefined: the API of this process, if it has one. */
  readonly edgeApiUrl: string | undefined;
  /** 0: half of what the edge accepts in total. */
  readonly maxSandboxConnections: number;
  /** 0: no limit. */
  readonly maxSandboxRequestsPerSecond: number;
  /** 0: the edge's default. */
  readonly maxTeamConnections: number;
  /** 0: no limit. */
  readonly maxTeamRequestsPerSecond: number;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly networkPool: string | undefined;
  readonly ipv6: "auto" | "on" | "off";
  readonly dns: readonly string[];
  readonly allowPrivate: readonly string[];
  /** The limits of teams without a tier. */
  readonly limits: Limits;
  readonly buildsAtOnce: number;
  readonly buildCacheDays: number;
  readonly maxUploadMb: number;
  /** Where clients reach the API. */
  readonly apiUrl: string | undefined;
  readonly blobsDir: string | undefined;
  readonly volumesDir: string | undefined;
  readonly keepEndedHours: number;
  readonly metricsDays: number;
  /** Whether events are recorded. */
  readonly events: boolean;
  readonly eventDays: number;
  readonly maxEvents: number;
  readonly logDays: number;
  readonly logTeamMb: number;
  /** The size of a volume for which none is given, in MiB. */
  readonly volumeSizeMb: number;
  readonly webhookNetworks: readonly string[];
  readonly auditDays: number;
  readonly maxAuditLines: number;
  /** Undefined: users sign in with access tokens of the platform only. */
  readonly oidc: OidcConfig | undefined;
  readonly secretsFile: string | undefined;
  readonly encryptionKeys: Secret | undefined;
  /** Undefined with undefined `encryptionKeys`: the data folder's own file. */
  readonly encryptionKeysFile: string | undefined;
  readonly readySlots: number;
  readonly poolSize: number;
  /** 0: a tenth of the host's memory. */
  readonly poolMemoryMb: number;
  readonly diskLimit: "auto" | "file" | "none";
  readonly site: SiteSettings;
  readonly images: ImagePullSettings;
  /** Where traces go, and the share of the requests that are traced. Undefined: there are no traces. */
  readonly traces: TraceSettings | undefined;
  /** Undefined: the metrics are not served. */
  readonly metrics: MetricsSettings | undefined;
}

export interface TlsServeConfig {
  readonly port: number;
  readonly certFile: string;
  readonly keyFile: string;
  /** Defined: this process obtains the certificate and renews it. */
  readonly acme?: AcmeSettings;
}

const PORT = { min: 0, max: 65_535 };

/** Reads and checks the settings. Throws one error that names every problem. */
export function parseServeConfig(env: Readonly<Record<string, string | undefined>>): ServeConfig {
  const reader = new ConfigReader(env, "SKERRY_");
  const edgePort = reader.integer("EDGE_PORT", 4681, PORT);
  const nodePort = reader.integer("NODE_PORT", 4682, PORT);
  const listen = reader.string("LISTEN", "127.0.0.1");
  const config: ServeConfig = {
    dataDir: reader.string("DATA", DEFAULT_DATA_DIR),
    roles: parseRoles(reader),
    listen,
    apiPort: reader.integer("API_PORT", 4680, PORT),
    edgePort,
    nodePort,
    nodeUrl: reader.string("NODE_URL", `http://${isIPv6(listen) ? `[${listen}]` : listen}:${nodePort}`),
    controlPort: reader.integer("CONTROL_PORT", 4683, PORT),
    databaseUrl: reader.optional("DATABASE_URL"),
    nodes: reader.list("NODES", []),
    controlUrl: reader.optional("CONTROL_URL"),
    runtime: reader.choice("RUNTIME", "gvisor", ["gvisor", "runc"]),
    domain: reader.string("DOMAIN", `localhost:${edgePort}`),
    advertiseDomain: reader.optional("ADVERTISE_DOMAIN"),
    pathHost: reader.optional("PATH_HOST"),
    trustedProxies: reader.list("TRUSTED_PROXIES", []),
    tls: readTls(reader),
    edgeApiUrl: reader.optional("EDGE_API_URL"),
    maxSandboxConnections: reader.integer("MAX_SANDBOX_CONNECTIONS", 0, { min: 0, max: 1_000_000 }),
    maxTeamConnections: reader.integer("MAX_TEAM_CONNECTIONS", 0, { min: 0, max: 1_000_000 }),
    maxTeamRequestsPerSecond: reader.integer("MAX_TEAM_REQUESTS_PER_SECOND", 4000, { min: 0, max: 1_000_000 }),
    maxSandboxRequestsPerSecond: reader.integer("MAX_SANDBOX_REQUESTS_PER_SECOND", 2000, { min: 0, max: 1_000_000 }),
    logLevel: reader.choice("LOG_LEVEL", "info", ["debug", "info", "warn", "error"]),
    networkPool: reader.optional("NETWORK_POOL"),
    ipv6: reader.choice("IPV6", "auto", ["auto", "on", "off"]),
    dns: reader.list("DNS", ["8.8.8.8"]),
    allowPrivate: reader.list("ALLOW_PRIVATE", []),
    limits: readLimits(reader),
    buildsAtOnce: reader.integer("BUILDS_AT_ONCE", 2, { min: 1, max: 1000 }),
    buildCacheDays: reader.integer("BUILD_CACHE_DAYS", 7, { min: 1, max: 3650 }),
    maxUploadMb: reader.integer("MAX_UPLOAD_MB", 4096, { min: 1, max: 1_048_576 }),
    apiUrl: reader.optional("API_URL"),
    blobsDir: reader.optional("BLOBS"),
    volumesDir: reader.optional("VOLUMES"),
    keepEndedHours: reader.integer("KEEP_ENDED_HOURS", 168, { min: 0, max: 24 * 365 }),
    metricsDays: reader.integer("METRICS_DAYS", 30, { min: 1, max: 3650 }),
    events: reader.choice("EVENTS", "on", ["on", "off"]) === "on",
    eventDays: reader.integer("EVENT_DAYS", 7, { min: 1, max: 365 }),
    maxEvents: reader.integer("MAX_EVENTS", 200_000, { min: 1000, max: 100_000_000 }),
    logDays: reader.integer("LOG_DAYS", 7, { min: 1, max: 3650 }),
    volumeSizeMb: reader.integer("VOLUME_SIZE_MB", 10_240, { min: 8, max: 16_777_216 }),
    logTeamMb: reader.integer("LOG_TEAM_MB", 256, { min: 1, max: 1_048_576 }),
    webhookNetworks: reader.list("WEBHOOK_NETWORKS", []),
    auditDays: reader.integer("AUDIT_DAYS", 365, { min: 1, max: 36_500 }),
    maxAuditLines: reader.integer("MAX_AUDIT_LINES", 10_000_000, { min: 1000, max: 1_000_000_000 }),
    oidc: readOidc(reader),
    secretsFile: reader.optional("SECRETS_FILE"),
    encryptionKeys: reader.secret("ENCRYPTION_KEYS"),
    encryptionKeysFile: reader.optional("ENCRYPTION_KEYS_FILE"),
    readySlots: reader.integer("READY_SLOTS", 8, { min: 0, max: 1024 }),
    poolSize: reader.integer("POOL_SIZE", 8, { min: 0, max: 1000 }),
    poolMemoryMb: reader.integer("POOL_MEMORY_MB", 0, { min: 0, max: 16_777_216 }),
    diskLimit: parseDiskLimit(reader),
    site: readSiteSettings(reader),
    images: readImagePullSettings(reader),
    metrics: readMetrics(reader),
    traces: readTraces(reader),
  };
  checkCombination(config, reader);
  reader.finish();
  return config;
}

/** The database's address. Defaults to SQLite in the data folder. */
export function databaseUrlOf({ databaseUrl, dataDir }: ServeConfig): string {
  return databaseUrl ?? `sqlite:${dataFolder(dataDir).databaseFile}`;
}

/** Where links to ports of sandboxes lead. Clients that use TLS for the API, or could, use it for sandboxes too. */
export function sandboxOriginOf({ advertiseDomain, domain, pathHost, tls, apiUrl }: ServeConfig) {
  const scheme = tls || apiUrl?.startsWith("https:") ? ("https" as const) : ("http" as const);
  return { scheme, domain: advertiseDomain ?? domain, ...(pathHost === undefined ? {} : { pathHost }) };
}

/**
 * The proxies whose `X-Forwarded-For` the API believes. The edge of this process is one: it passes on requests for `api.{domain}`, and tells
 * who sent them.
 */
export function apiProxiesOf({ trustedProxies, roles, tls, listen }: ServeConfig): readonly string[] {
  if (!roles.has("edge") || !tls) return trustedProxies;
  const own = listen === "0.0.0.0" || listen === "::" || isIP(listen) === 0 ? [] : [listen];
  return [...trustedProxies, "127.0.0.0/8", "::1", ...own];
}

/** The key may be in the certificate's file. */
function readTls(reader: ConfigReader): TlsServeConfig | undefined {
  const port = reader.integer("TLS_PORT", 4443, PORT);
  const certFile = reader.optional("TLS_CERT");
  const keyFile = reader.optional("TLS_KEY");
  if (certFile === undefined && keyFile !== undefined) reader.problem("SKERRY_TLS_KEY needs SKERRY_TLS_CERT, the certificate of the key");
  const directory = reader.optional("ACME_DIRECTORY");
  const acme = { directory, contact: reader.optional("ACME_CONTACT"), hook: reader.optional("ACME_HOOK") };
  const agree = reader.choice("ACME_AGREE", "no", ["yes", "no"]) === "yes";
  if (directory !== undefined) {
    if (certFile !== undefined) reader.problem("SKERRY_ACME_DIRECTORY and SKERRY_TLS_CERT exclude each other");
    const names = {
      directory: "SKERRY_ACME_DIRECTORY",
      contact: "SKERRY_ACME_CONTACT",
      hook: "SKERRY_ACME_HOOK",
      agree: "SKERRY_ACME_AGREE=yes",
      domain: "SKERRY_DOMAIN",
    };
    const domain = reader.string("DOMAIN", "localhost");
    const file = acmeFiles(dataFolder(reader.string("DATA", DEFAULT_DATA_DIR))).certificate;
    return {
      port,
      certFile: file,
      keyFile: file,
      acme: readAcmeSettings({ ...acme, agree }, domain, names, (text) => reader.problem(text)),
    };
  }
  return certFile === undefined ? undefined : { port, certFile, keyFile: keyFile ?? certFile };
}

/** "image" is the former name of "file". */
function parseDiskLimit(reader: ConfigReader): ServeConfig["diskLimit"] {
  const setting = reader.choice("DISK_LIMIT", "auto", ["auto", "file", "none", "image"]);
  return setting === "image" ? "file" : setting;
}

function parseRoles(reader: ConfigReader): ReadonlySet<Role> {
  const names = reader.list("ROLES", ROLES);
  const unknown = names.filter((name) => !ROLES.some((role) => role === name));
  if (unknown.length > 0 || names.length === 0) {
    reader.problem(`SKERRY_ROLES must be a list of ${ROLES.join(", ")}, not "${names.join(",")}"`);
  }
  return new Set(ROLES.filter((role) => names.includes(role)));
}

function checkCombination(config: ServeConfig, reader: ConfigReader): void {
  const { roles } = config;
  if (roles.has("api") && !roles.has("node") && config.nodes.length === 0) {
    reader.problem("SKERRY_NODES must name the nodes' RPC addresses (http://host:4682,…) when the api role runs without the node role");
  }
  if (roles.has("edge") && !roles.has("api") && config.controlUrl === undefined) {
    reader.problem(
      "SKERRY_CONTROL_URL must name the api's control address (http://host:4683) when the edge role runs without the api role",
    );
  }
  if (roles.has("api") && roles.has("node") && !roles.has("edge") && /^http:\/\/(0\.0\.0\.0|\[::\]):/.test(config.nodeUrl)) {
    reader.problem(
      "SKERRY_NODE_URL must be the address at which edges reach this node (http://host:4682), because it listens on every address of its host",
    );
  }
  if (config.encryptionKeys !== undefined && config.encryptionKeysFile !== undefined) {
    reader.problem("SKERRY_ENCRYPTION_KEYS and SKERRY_ENCRYPTION_KEYS_FILE exclude each other");
  }
  const one = (url: string | undefined) => (url === undefined ? [] : [url]);
  if (config.edgeApiUrl !== undefined && !/^http:\/\/[^/]+\/?$/.test(config.edgeApiUrl)) {
    reader.problem(`SKERRY_EDGE_API_URL takes an address such as http://host:4680, not "${config.edgeApiUrl}"`);
  }
  const urls = { NODES: config.nodes, NODE_URL: [config.nodeUrl], CONTROL_URL: one(config.controlUrl), API_URL: one(config.apiUrl) };
  for (const [name, values] of Object.entries(urls)) {
    for (const url of values) if (!isHttpUrl(url)) reader.problem(`SKERRY_${name} takes addresses such as http://host:4682, not "${url}"`);
  }
  if (config.pathHost !== undefined) checkPathHost(config.pathHost, config, reader);
  for (const [name, networks] of Object.entries({ TRUSTED_PROXIES: config.trustedProxies, WEBHOOK_NETWORKS: config.webhookNetworks })) {
    for (const network of networks.filter((one) => !isNetwork(one))) {
      reader.problem(`SKERRY_${name} takes addresses and networks such as 10.0.0.5 and 10.0.0.0/24, not "${network}"`);
    }
  }
  for (const address of config.dns) {
    if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(address)) reader.problem(`SKERRY_DNS takes IPv4 addresses, not "${address}"`);
  }
  for (const network of config.allowPrivate) {
    if (!isPrivateNetwork(network)) {
      reader.problem(`SKERRY_ALLOW_PRIVATE takes parts of private networks such as 10.20.0.0/16 and 192.168.1.5, not "${network}"`);
    }
  }
}

function checkPathHost(pathHost: string, { domain }: ServeConfig, reader: ConfigReader): void {
  const name = hostNameOf(pathHost);
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[1-9]\d{0,4})?$/i.test(pathHost) || name === "") {
    reader.problem(`SKERRY_PATH_HOST takes a host name, with the port that clients use if it is not that of the scheme, not "${pathHost}"`);
  } else if (isSandboxHost(pathHost) || name === hostNameOf(domain) || name === `api.${hostNameOf(domain)}`) {
    reader.problem(
      `SKERRY_PATH_HOST must be a name of its own, and "${pathHost}" is one of the API, of a sandbox, or SKERRY_DOMAIN itself`,
    );
  }
}

function isNetwork(text: string): boolean {
  const [address = "", length, ...rest] = text.split("/");
  const bits = isIPv6(address) ? 128 : 32;
  if (isIP(address) === 0 || rest.length > 0) return false;
  return length === undefined || (/^[1-9]\d{0,2}$/.test(length) && Number(length) <= bits);
}

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "http:" || url.protocol === "https:");
}

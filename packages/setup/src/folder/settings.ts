import { isIP } from "node:net";
import { OperatorError } from "../operator-error.ts";
import { type DataFolder, DEFAULT_DATA_DIR } from "./data-folder.ts";
import { readJsonFile } from "./json-file.ts";

export type RuntimeName = "gvisor" | "runc";

/** How the platform of a data folder listens and runs: what `up` was told, kept for `env`, `status` and the next `up`. */
export interface PlatformSettings {
  readonly runtime: RuntimeName;
  readonly listen: string;
  readonly apiPort: number;
  readonly edgePort: number;
  readonly domain: string;
}

/** The options that commands share, as commander hands them over. */
export interface SettingOptions {
  readonly runtime?: string;
  readonly listen?: string;
  readonly apiPort?: string;
  readonly edgePort?: string;
  readonly domain?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function dataDirOf(option: string | undefined, env: Environment): string {
  return option ?? (env.SKERRY_DATA || DEFAULT_DATA_DIR);
}

export const readSettings = (folder: DataFolder) => readJsonFile<PlatformSettings>(folder.settingsFile);

/** Command line first, then the environment, then what this data folder was last started with, then the defaults. */
export function resolveSettings(options: SettingOptions, env: Environment, last: PlatformSettings | undefined): PlatformSettings {
  const pick = (option: string | undefined, name: string) => option ?? (env[name] || undefined);
  const runtime = pick(options.runtime, "SKERRY_RUNTIME") ?? last?.runtime ?? "gvisor";
  if (runtime !== "gvisor" && runtime !== "runc") throw usage(`the runtime is gvisor or runc, not "${runtime}"`);
  const listen = pick(options.listen, "SKERRY_LISTEN") ?? last?.listen ?? "127.0.0.1";
  if (isIP(listen) === 0) throw usage(`--listen takes an address (127.0.0.1, 0.0.0.0, ::1 ...), not "${listen}"`);
  const apiPort = parsePort("--api-port", pick(options.apiPort, "SKERRY_API_PORT")) ?? last?.apiPort ?? 4680;
  const edgePort = parsePort("--edge-port", pick(options.edgePort, "SKERRY_EDGE_PORT")) ?? last?.edgePort ?? 4681;
  if (apiPort === edgePort) throw usage(`the API and the edge can't share port ${apiPort}`);
  const lastDomain = last && last.edgePort === edgePort ? last.domain : undefined;
  const domain = pick(options.domain, "SKERRY_DOMAIN") ?? lastDomain ?? `localhost:${edgePort}`;
  return { runtime, listen, apiPort, edgePort, domain };
}

function parsePort(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65535) throw usage(`${name} takes a port from 1 to 65535, not "${text}"`);
  return port;
}

const usage = (message: string) => new OperatorError(message, { exit: "usage" });

/** The settings as `skerry serve` reads them, with whatever other SKERRY_ settings the operator has in the environment. */
export function serveEnvironment(folder: DataFolder, settings: PlatformSettings, env: Environment): Record<string, string> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[0].startsWith("SKERRY_") && !isOperatorOnly(entry[0]) && entry[1] !== undefined,
  );
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: env.HOME ?? "/root",
    LANG: "C.UTF-8",
    // Types stripped and code compiled once: a third off each later start.
    NODE_COMPILE_CACHE: folder.compileCacheDir,
    ...Object.fromEntries(passed),
    SKERRY_DATA: folder.root,
    SKERRY_RUNTIME: settings.runtime,
    SKERRY_LISTEN: settings.listen,
    SKERRY_API_PORT: String(settings.apiPort),
    SKERRY_EDGE_PORT: String(settings.edgePort),
    SKERRY_DOMAIN: settings.domain,
  };
}

/** Read by ./skerry itself, or printed by `./skerry env`: the platform does not know them. */
const OPERATOR_ONLY: ReadonlySet<string> = new Set(["SKERRY_BASE_IMAGE", "SKERRY_ADMIN_TOKEN"]);
const isOperatorOnly = (name: string) => OPERATOR_ONLY.has(name) || name.startsWith("SKERRY_TEST_");

/** Where a client on this machine reaches the platform. */
export function clientUrls(settings: PlatformSettings): { api: string; edge: string } {
  const any: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  const address = any[settings.listen] ?? settings.listen;
  const host = isIP(address) === 6 ? `[${address}]` : address;
  return { api: `http://${host}:${settings.apiPort}`, edge: `http://${host}:${settings.edgePort}` };
}

// The state of the platform on this host, from the host itself and from the platform's API. What cannot be found out is null: a status must
// not fail because something else does.

import { X509Certificate } from "node:crypto";
import { readFile, statfs } from "node:fs/promises";
import { freemem, totalmem } from "node:os";
import type { BaseTemplate, CurrentAgent } from "@skerry/setup";
import { readTools } from "@skerry/setup";
import {
  acmeFiles,
  clientUrls,
  type DataFolder,
  localTlsFiles,
  type PlatformSettings,
  readJsonFile,
  readSecrets,
  readSettings,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon, isHealthy } from "../daemon/find-daemon.ts";
import { environmentOf } from "../support/secret-values.ts";
import { type LoggedError, lastErrors } from "./last-errors.ts";

/** Of `GET /admin/status`. */
interface PlatformStatus {
  readonly sandboxes: Readonly<Record<string, number>>;
  readonly builds: Readonly<Record<string, number>>;
  readonly teams: number;
  readonly templates: number;
  readonly webhooks: { readonly enabled: number; readonly failing: number; readonly disabled: number };
  readonly nodes: readonly {
    readonly nodeId: string;
    readonly status: string;
    readonly readySandboxes: number | null;
    readonly startsRunning: number | null;
    readonly startsWaiting: number | null;
  }[];
  readonly databaseMs: number;
  readonly eventLagMs: number;
  readonly uptimeMs: number;
  readonly memoryBytes: number;
}

export interface Use {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

export interface Status {
  readonly running: boolean;
  readonly healthy: boolean;
  readonly pid: number | null;
  readonly version: string;
  /** Of the process on this host. */
  readonly roles: string | null;
  readonly dataDir: string;
  readonly runtime: string | null;
  readonly api: string | null;
  readonly sandboxes: string | null;
  /** The address of the API for clients that know only the domain. */
  readonly tls: string | null;
  /** When the certificate of the TLS listener expires. */
  readonly certificateUntil: string | null;
  readonly database: "sqlite" | "postgres" | null;
  readonly runningSandboxes: number | null;
  /** Counts and figures of the API; null when it does not answer, or its token cannot be read. */
  readonly platform: PlatformStatus | null;
  readonly memory: Use;
  /** The file system of the data folder. */
  readonly disk: Use | null;
  readonly runsc: string | null;
  readonly agent: string | null;
  readonly baseTemplate: string | null;
  /** The newest ones of the log, oldest first. */
  readonly lastErrors: readonly LoggedError[];
}

export async function readStatus(context: OperatorContext, folder: DataFolder): Promise<Status> {
  const settings = await readSettings(folder);
  const live = await findDaemon(folder);
  const urls = settings && clientUrls(settings);
  const healthy = live !== undefined && urls !== undefined && (await isHealthy(urls.api));
  const tools = await readTools(folder);
  const agent = await readJsonFile<CurrentAgent>(folder.agentFile);
  const template = await readJsonFile<BaseTemplate>(folder.templateFile);
  const platform = healthy && urls ? await askPlatform(folder, urls.api) : null;
  const variables = await environmentOf(live?.pid);
  return {
    running: live !== undefined,
    healthy,
    pid: live?.pid ?? null,
    version: context.version,
    roles: live ? variables.SKERRY_ROLES || "api,edge,node" : null,
    dataDir: folder.root,
    runtime: settings?.runtime ?? null,
    api: urls?.api ?? null,
    sandboxes: urls?.edge ?? null,
    tls: settings?.tls ? `https://api.${settings.domain}` : null,
    certificateUntil: settings ? await certificateEnd(folder, settings) : null,
    database: live ? databaseKind(variables.SKERRY_DATABASE_URL) : null,
    runningSandboxes: platform ? (platform.sandboxes.running ?? 0) : null,
    platform,
    memory: { usedBytes: totalmem() - freemem(), totalBytes: totalmem() },
    disk: await diskUse(folder.root),
    runsc: tools?.runsc ? `${tools.runsc.version} (sha512 ${tools.runsc.sha512.slice(0, 12)})` : null,
    agent: agent ? `${agent.version} (${agent.digest.replace("sha256:", "").slice(0, 12)})` : null,
    baseTemplate: template ? `${template.templateId} (${template.distribution})` : null,
    lastErrors: await lastErrors(folder.logFile),
  };
}

async function askPlatform(folder: DataFolder, api: string): Promise<PlatformStatus | null> {
  try {
    const { adminToken } = await readSecrets(folder);
    const response = await fetch(`${api}/admin/status`, { headers: { "X-Admin-Token": adminToken }, signal: AbortSignal.timeout(30_000) });
    return response.ok ? ((await response.json()) as PlatformStatus) : null;
  } catch {
    // Without root the token is unreadable.
    return null;
  }
}

/** The default is SQLite in the data folder. */
function databaseKind(url: string | undefined): "sqlite" | "postgres" {
  return url?.startsWith("postgres") ? "postgres" : "sqlite";
}

async function certificateEnd(folder: DataFolder, { tls }: PlatformSettings): Promise<string | null> {
  if (!tls) return null;
  const file = tls.acme ? acmeFiles(folder).certificate : (tls.certFile ?? localTlsFiles(folder).cert);
  try {
    return new X509Certificate(await readFile(file)).validToDate.toISOString();
  } catch {
    return null;
  }
}

async function diskUse(path: string): Promise<Use | null> {
  try {
    const { blocks, bfree, bsize } = await statfs(path);
    return { usedBytes: (blocks - bfree) * bsize, totalBytes: blocks * bsize };
  } catch {
    return null;
  }
}

import type { BaseTemplate, CurrentAgent } from "@skerry/setup";
import { readTools } from "@skerry/setup";
import {
  clientUrls,
  type DataFolder,
  dataDirOf,
  dataFolder,
  EXIT_CODES,
  readJsonFile,
  readSecrets,
  readSettings,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon, isHealthy } from "../daemon/find-daemon.ts";
import { painter } from "../terminal/text.ts";

interface Status {
  readonly running: boolean;
  readonly healthy: boolean;
  readonly pid: number | null;
  readonly dataDir: string;
  readonly runtime: string | null;
  readonly api: string | null;
  readonly sandboxes: string | null;
  /** The address of the API for clients that know only the domain. */
  readonly tls: string | null;
  readonly runningSandboxes: number | null;
  readonly runsc: string | null;
  readonly agent: string | null;
  readonly baseTemplate: string | null;
}

/** Prints the state of the platform. Exit code 0 when it answers, 3 when it is not running, 1 when it runs but does not answer. */
export async function status(context: OperatorContext, options: { data?: string; json?: boolean }): Promise<void> {
  const state = await readStatus(dataFolder(dataDirOf(options.data, context.env)));
  process.stdout.write(options.json ? `${JSON.stringify(state, null, 2)}\n` : formatStatus(state));
  if (!state.running) process.exitCode = EXIT_CODES.notRunning.code;
  else if (!state.healthy) process.exitCode = EXIT_CODES.failed.code;
}

async function readStatus(folder: DataFolder): Promise<Status> {
  const settings = await readSettings(folder);
  const live = await findDaemon(folder);
  const urls = settings && clientUrls(settings);
  const healthy = live !== undefined && urls !== undefined && (await isHealthy(urls.api));
  const tools = await readTools(folder);
  const agent = await readJsonFile<CurrentAgent>(folder.agentFile);
  const template = await readJsonFile<BaseTemplate>(folder.templateFile);
  return {
    running: live !== undefined,
    healthy,
    pid: live?.pid ?? null,
    dataDir: folder.root,
    runtime: settings?.runtime ?? null,
    api: urls?.api ?? null,
    sandboxes: urls?.edge ?? null,
    tls: settings?.tls ? `https://api.${settings.domain}` : null,
    runningSandboxes: healthy && urls ? await countSandboxes(folder, urls.api) : null,
    runsc: tools?.runsc ? `${tools.runsc.version} (sha512 ${tools.runsc.sha512.slice(0, 12)})` : null,
    agent: agent ? `${agent.version} (${agent.digest.replace("sha256:", "").slice(0, 12)})` : null,
    baseTemplate: template ? `${template.templateId} (${template.distribution})` : null,
  };
}

async function countSandboxes(folder: DataFolder, api: string): Promise<number | null> {
  try {
    const { apiKey } = await readSecrets(folder);
    const response = await fetch(`${api}/sandboxes`, { headers: { "X-API-Key": apiKey }, signal: AbortSignal.timeout(5_000) });
    return response.ok ? ((await response.json()) as unknown[]).length : null;
  } catch {
    // Without root the API key is unreadable, so the count is unknown.
    return null;
  }
}

function formatStatus(state: Status): string {
  const paint = painter(process.stdout);
  const headline = state.healthy
    ? paint("good", "running")
    : state.running
      ? paint("bad", "running, but the API does not answer")
      : paint("warn", "not running");
  const rows: [string, string | number | null][] = [
    ["Skerry", headline],
    ["process", state.pid],
    ["API", state.running ? state.api : null],
    ["edge", state.running ? state.sandboxes : null],
    ["TLS", state.running ? state.tls : null],
    ["sandboxes", state.runningSandboxes],
    ["runtime", state.runtime],
    ["runsc", state.runsc],
    ["agent", state.agent],
    ["base template", state.baseTemplate],
    ["data folder", state.dataDir],
  ];
  const lines = rows.filter(([, value]) => value !== null).map(([name, value]) => `${name.padEnd(14)} ${value}`);
  if (!state.running) lines.push("", "To start it, run ./skerry up.");
  return `${lines.join("\n")}\n`;
}

// What `up` and `restart` share: setting up the host, running a first sandbox through the public API, printing how to connect.

import { agentTreesInUse } from "@skerry/node/folder";
import type { CurrentAgent, Steps } from "@skerry/setup";
import { removeOldAgents, setUp } from "@skerry/setup";
import {
  clientUrls,
  type DataFolder,
  dataDirOf,
  dataFolder,
  OperatorError,
  type PlatformSettings,
  readJsonFile,
  readSecrets,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { NoRoomError, runFirstSandbox } from "../first-sandbox.ts";
import { makeRoom } from "../make-room.ts";
import { prepareCertificate } from "../prepare-certificate.ts";
import { formatDuration, painter } from "../terminal/text.ts";

export interface StartOptions {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

/** Sent by Ctrl-C, a service manager and a closed terminal. */
const INTERRUPTIONS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new OperatorError("interrupted; run the command again to continue", { exit: "interrupted" }));
  for (const name of INTERRUPTIONS) process.on(name, onSignal);
  try {
    return await work(interrupt.signal);
  } finally {
    for (const name of INTERRUPTIONS) process.off(name, onSignal);
  }
}

/** Prepares the host and the data folder for this checkout's platform. Does not touch a running platform. Needs the set-up lock. */
export async function prepareMachine({ context, folder, settings, steps, signal }: StartOptions): Promise<void> {
  await makeRoom(folder);
  const used = agentTreesInUse(folder.nodeDir);
  const agentBefore = await readJsonFile<CurrentAgent>(folder.agentFile);
  const { repoRoot, env } = context;
  await setUp(folder, { repoRoot, runtime: settings.runtime, baseImage: env.SKERRY_BASE_IMAGE, env, steps, signal });
  await prepareCertificate({ folder, settings, steps });
  const agentNow = await readJsonFile<CurrentAgent>(folder.agentFile);
  // The previous tree stays: a `serve` that this command did not start may still create sandboxes from it.
  await removeOldAgents(folder, new Set([...used, ...[agentBefore, agentNow].flatMap((agent) => agent?.digest ?? [])]));
}

export async function tryFirstSandbox({ folder, settings, steps }: Pick<StartOptions, "folder" | "settings" | "steps">): Promise<void> {
  const { apiKey } = await readSecrets(folder);
  try {
    await steps.run(
      "first sandbox",
      () => runFirstSandbox({ ...clientUrls(settings), apiKey }),
      ({ sandboxId, firstOutputMs }) => `${sandboxId}, first output after ${Math.round(firstOutputMs)} ms`,
    );
  } catch (error) {
    if (!(error instanceof NoRoomError)) throw error;
    steps.warn(`The platform runs, but this host has no room for another sandbox: ${error.message}`);
  }
}

export function printConnection(folder: DataFolder, settings: PlatformSettings, elapsedMs: number): void {
  const paint = painter(process.stdout);
  const { api, edge } = clientUrls(settings);
  const flag = folder.root === dataFolder(dataDirOf(undefined, {})).root ? "" : ` --data ${folder.root}`;
  const lines = [
    "",
    `${paint("strong", "Skerry is running")} on ${settings.runtime}, started in ${formatDuration(elapsedMs)}.`,
    "",
    `  API        ${api}`,
    `  sandboxes  ${edge} or ${settings.tls ? "https" : "http"}://{port}-{sandboxID}.${settings.domain}`,
    ...(settings.tls ? [`  TLS        https://api.${settings.domain}, on port ${settings.tls.port}`] : []),
    `  connect    eval "$(./skerry env${flag})"`,
    `  stop       ./skerry down${flag}`,
    "",
  ];
  if (settings.listen !== "127.0.0.1" && settings.listen !== "::1") {
    lines.splice(
      -1,
      0,
      `  ${paint("warn", "!")} The platform listens on ${settings.listen} ${settings.tls ? "also without" : "without"} TLS. Anyone who can read this traffic can read the API key.`,
      "",
    );
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

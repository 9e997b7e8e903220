// What `up` and `restart` have in common: the machine made ready, a first sandbox through the public API, how to connect.

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
import { formatDuration, painter } from "../terminal/text.ts";

export interface StartOptions {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

/** Ctrl-C, a service manager, a closed terminal. */
const INTERRUPTIONS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export async function interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new OperatorError("stopped; run it again to go on from here", { exit: "interrupted" }));
  for (const name of INTERRUPTIONS) process.on(name, onSignal);
  try {
    await work(interrupt.signal);
  } finally {
    for (const name of INTERRUPTIONS) process.off(name, onSignal);
  }
}

/** Makes the machine and the data folder ready for this checkout's platform. A platform that runs is not touched. Needs the set-up lock. */
export async function prepareMachine({ context, folder, settings, steps, signal }: StartOptions): Promise<void> {
  await makeRoom(folder);
  const used = agentTreesInUse(folder.nodeDir);
  const agentBefore = await readJsonFile<CurrentAgent>(folder.agentFile);
  await setUp(folder, { repoRoot: context.repoRoot, runtime: settings.runtime, baseImage: context.env.SKERRY_BASE_IMAGE, steps, signal });
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
      ({ sandboxId, firstOutputMs }) => `${sandboxId} said hello after ${Math.round(firstOutputMs)} ms`,
    );
  } catch (error) {
    if (!(error instanceof NoRoomError)) throw error;
    steps.warn(`The platform is up, but there is no room for another sandbox now: ${error.message}`);
  }
}

export function printConnection(folder: DataFolder, settings: PlatformSettings, elapsedMs: number): void {
  const paint = painter(process.stdout);
  const { api, edge } = clientUrls(settings);
  const flag = folder.root === dataFolder(dataDirOf(undefined, {})).root ? "" : ` --data ${folder.root}`;
  const lines = [
    "",
    `${paint("strong", "Skerry is up")} after ${formatDuration(elapsedMs)}, on ${settings.runtime}.`,
    "",
    `  API            ${api}`,
    `  sandboxes      ${edge}  (or {port}-{sandboxID}.${settings.domain})`,
    `  for a client   eval "$(./skerry env${flag})"`,
    `  status, end    ./skerry status${flag}    ./skerry down${flag}`,
    "",
  ];
  if (settings.listen !== "127.0.0.1" && settings.listen !== "::1") {
    lines.splice(
      -1,
      0,
      `  ${paint("warn", "!")} it listens on ${settings.listen}, without TLS: whoever sees this traffic sees the API key`,
      "",
    );
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

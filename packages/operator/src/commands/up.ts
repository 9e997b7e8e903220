import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { OperatorContext } from "../context.ts";
import { isHealthy } from "../daemon/health.ts";
import { type ProcessRecord, readLiveProcess } from "../daemon/process-record.ts";
import { takeSetupLock } from "../daemon/setup-lock.ts";
import { startDaemon } from "../daemon/start-daemon.ts";
import { stopDaemon } from "../daemon/stop-daemon.ts";
import { createDataFolder, type DataFolder, dataFolder } from "../data-folder.ts";
import { runFirstSandbox } from "../first-sandbox.ts";
import { readJsonFile, writeJsonFile } from "../json-file.ts";
import { OperatorError } from "../operator-error.ts";
import { requireRoot } from "../require-root.ts";
import { readSecrets } from "../secrets.ts";
import { clientUrls, dataDirOf, type PlatformSettings, readSettings, resolveSettings, type SettingOptions } from "../settings.ts";
import type { CurrentAgent } from "../setup/ensure-agent.ts";
import { removeOldAgents } from "../setup/remove-old-agents.ts";
import { setUp } from "../setup/set-up.ts";
import { formatDuration } from "../terminal/duration.ts";
import { createSteps, type Steps } from "../terminal/steps.ts";
import { painter } from "../terminal/style.ts";
import { shutDown } from "./down.ts";
import { stayInForeground } from "./foreground.ts";

export interface UpOptions extends SettingOptions {
  readonly data?: string;
  readonly detach?: boolean;
}

/** Ctrl-C, a service manager, a closed terminal. */
const INTERRUPTIONS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Sets up what is missing, starts the platform, runs a first sandbox and says how to connect. */
export async function up(context: OperatorContext, options: UpOptions): Promise<void> {
  const startedAt = performance.now();
  requireRoot("up");
  const dataDir = dataDirOf(options.data, context.env);
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new OperatorError("stopped; run it again to go on from here", { exit: "interrupted" }));
  for (const name of INTERRUPTIONS) process.on(name, onSignal);
  try {
    const folder = await createDataFolder(dataDir);
    const running = await readLiveProcess(folder.pidFile);
    if (running) return await alreadyUp({ context, folder, options, running });
    const settings = resolveSettings(options, context.env, await readSettings(folder));
    const steps = createSteps();
    await start({ context, folder, settings, steps, signal: interrupt.signal });
    printConnection(folder, settings, performance.now() - startedAt);
    if (options.detach) return;
    await stayInForeground({ context, folder, settings, signal: interrupt.signal });
  } finally {
    for (const name of INTERRUPTIONS) process.off(name, onSignal);
  }
}

interface StartOptions {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

async function start({ context, folder, settings, steps, signal }: StartOptions): Promise<void> {
  await using _lock = await takeSetupLock(folder.lockFile);
  const agentBefore = await readJsonFile<CurrentAgent>(folder.agentFile);
  await setUp(folder, { repoRoot: context.repoRoot, runtime: settings.runtime, baseImage: context.env.SKERRY_BASE_IMAGE, steps, signal });
  const agentNow = await readJsonFile<CurrentAgent>(folder.agentFile);
  // The one before stays too: a `serve` that was not started from here may have it still.
  await removeOldAgents(folder, new Set([agentBefore, agentNow].flatMap((agent) => agent?.digest ?? [])));
  await writeJsonFile(folder.settingsFile, settings);
  const { api, edge } = clientUrls(settings);
  const hasSandboxes = (await readdir(join(folder.root, "node/sandboxes")).catch(() => [])).length > 0;
  await steps.run(
    "platform",
    async () => {
      if (await isHealthy(api)) throw portTaken(api);
      return await startDaemon(folder, { settings, mainScript: context.mainScript, env: context.env, signal });
    },
    (pid) => `process ${pid}, API ${api}`,
  );
  try {
    const { apiKey } = await readSecrets(folder);
    await steps.run(
      "first sandbox",
      () => runFirstSandbox({ api, edge, apiKey }),
      ({ sandboxId, firstOutputMs }) => `${sandboxId} said hello after ${Math.round(firstOutputMs)} ms`,
    );
    signal.throwIfAborted();
  } catch (error) {
    // A platform that can't run a sandbox is of no use, and a half-started one would be in the way.
    if (hasSandboxes && !signal.aborted) {
      await stopDaemon(folder);
      steps.warn("The sandboxes from before go on running. To end them: ./skerry down");
    } else {
      await shutDown(context, folder, steps);
    }
    throw error;
  }
}

function portTaken(api: string): OperatorError {
  return new OperatorError(`something else answers on ${api} already`, {
    mend: ["Another platform? Choose other ports: ./skerry up --api-port 4780 --edge-port 4781"],
  });
}

async function alreadyUp(options: {
  context: OperatorContext;
  folder: DataFolder;
  options: UpOptions;
  running: ProcessRecord;
}): Promise<void> {
  const { context, folder, running } = options;
  const current = await readSettings(folder);
  const wanted = resolveSettings(options.options, context.env, current);
  if (!current || JSON.stringify(wanted) !== JSON.stringify(current)) {
    throw new OperatorError("the platform is up, with other settings", {
      mend: ["Stop it first: ./skerry down", "Then start it as you want it."],
    });
  }
  process.stdout.write(`The platform is up already (process ${running.pid}, API ${clientUrls(current).api}).\n`);
}

function printConnection(folder: DataFolder, settings: PlatformSettings, elapsedMs: number): void {
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

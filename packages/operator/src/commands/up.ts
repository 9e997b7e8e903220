import { hasContainers } from "@skerry/node/folder";
import type { ProcessRecord } from "@skerry/setup/folder";
import {
  clientUrls,
  createDataFolder,
  type DataFolder,
  dataDirOf,
  keptSite,
  OperatorError,
  readSettings,
  resolveSettings,
  type SettingOptions,
  takeSetupLock,
  writeJsonFile,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon } from "../daemon/find-daemon.ts";
import { assertPortsFree } from "../daemon/free-ports.ts";
import { startDaemon } from "../daemon/start-daemon.ts";
import { stopDaemon } from "../daemon/stop-daemon.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";
import { shutDown } from "./down.ts";
import { stayInForeground } from "./foreground.ts";
import { interruptible, prepareMachine, printConnection, type StartOptions, tryFirstSandbox } from "./start-platform.ts";

export interface UpOptions extends SettingOptions {
  readonly data?: string;
  readonly detach?: boolean;
}

/** Installs what is missing, starts the platform, runs a first sandbox and prints how to connect. */
export async function up(context: OperatorContext, options: UpOptions): Promise<void> {
  const startedAt = performance.now();
  requireRoot("up");
  await interruptible(async (signal) => {
    const folder = await createDataFolder(dataDirOf(options.data, context.env));
    const running = await findDaemon(folder);
    if (running) return await alreadyUp({ context, folder, options, running });
    const settings = resolveSettings(options, context.env, await readSettings(folder));
    const site = await keptSite(folder, context.env);
    await start({ context: { ...context, env: site.env }, folder, settings, steps: createSteps(), signal });
    await site.keep();
    printConnection(folder, settings, performance.now() - startedAt);
    if (!options.detach) await stayInForeground({ context: { ...context, env: site.env }, folder, settings, signal });
  });
}

async function start(options: StartOptions): Promise<void> {
  const { context, folder, settings, steps, signal } = options;
  await using _lock = await takeSetupLock(folder.lockFile);
  // Before the set-up, which takes minutes the first time.
  await assertPortsFree(settings);
  await prepareMachine(options);
  await writeJsonFile(folder.settingsFile, settings);
  const hadSandboxes = hasContainers(folder.nodeDir);
  await steps.run(
    "platform",
    () => startDaemon(folder, { settings, mainScript: context.mainScript, env: context.env, signal }),
    (pid) => `process ${pid}, API ${clientUrls(settings).api}`,
  );
  try {
    await tryFirstSandbox(options);
    signal.throwIfAborted();
  } catch (error) {
    // A platform that cannot run a sandbox is stopped. If there were sandboxes before, they keep running without it.
    if (hadSandboxes && !signal.aborted) {
      await stopDaemon(folder);
      steps.warn("Existing sandboxes keep running. To kill them, run ./skerry down.");
    } else {
      await shutDown(context, folder, steps);
    }
    throw error;
  }
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
    throw new OperatorError("the platform is already running with other settings", {
      hints: [
        "To change the settings, run ./skerry restart with the same options. Sandboxes keep running.",
        "To start over, run ./skerry down, which kills every sandbox, and then ./skerry up.",
      ],
    });
  }
  process.stdout.write(
    `Skerry is already running (process ${running.pid}, API ${clientUrls(current).api}).\n` +
      "After an update of this checkout, run ./skerry restart. Sandboxes keep running.\n",
  );
}

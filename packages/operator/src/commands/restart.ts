// Replaces the daemon with another version or with other settings. Sandboxes run without a daemon, and the next daemon adopts them.
//
// Failure policy: everything that can fail early runs while the old daemon still answers. If the new daemon does not start with changed
// settings, it is started with the old ones. If it does not start at all, sandboxes keep running until a working checkout is started.

import { realpath } from "node:fs/promises";
import {
  type DataFolder,
  dataDirOf,
  dataFolder,
  keptSite,
  OperatorError,
  type PlatformSettings,
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
import { interruptible, prepareMachine, printConnection, type StartOptions, tryFirstSandbox } from "./start-platform.ts";

export interface RestartOptions extends SettingOptions {
  readonly data?: string;
}

/** Replaces the platform's process with one of this checkout. Settings that are not given keep their values. */
export async function restart(context: OperatorContext, options: RestartOptions): Promise<void> {
  const startedAt = performance.now();
  requireRoot("restart");
  const { folder, before } = await lastStarted(dataDirOf(options.data, context.env));
  const settings = resolveSettings(options, context.env, before);
  await interruptible(async (signal) => {
    await using _lock = await takeSetupLock(folder.lockFile);
    const site = await keptSite(folder, context.env);
    const start = { context: { ...context, env: site.env }, folder, settings, steps: createSteps(), signal };
    // Checked while the platform still runs. Its own ports become free when it stops.
    const isRunning = (await findDaemon(folder)) !== undefined;
    await assertPortsFree(settings, (port) => isRunning && [before.apiPort, before.edgePort, before.tls?.port].includes(port));
    await prepareMachine(start);
    signal.throwIfAborted();
    await replaceDaemon(start, before);
    await site.keep();
    await tryFirstSandbox(start).catch((error: unknown) => {
      start.steps.warn("The platform runs and has its sandboxes, but could not create another one:");
      throw error;
    });
  });
  printConnection(folder, settings, performance.now() - startedAt);
}

async function lastStarted(dataDir: string): Promise<{ folder: DataFolder; before: PlatformSettings }> {
  const root = await realpath(dataDir).catch(() => undefined);
  const folder = root === undefined ? undefined : dataFolder(root);
  const before = folder && (await readSettings(folder));
  if (!before) throw new OperatorError(`there is no platform in ${dataDir}`, { hints: ["To start one, run ./skerry up."] });
  return { folder, before };
}

/** Must not be interrupted: sandboxes would be left without a platform. */
async function replaceDaemon({ context, folder, settings, steps }: StartOptions, before: PlatformSettings): Promise<void> {
  const startWith = async (wanted: PlatformSettings) => {
    await writeJsonFile(folder.settingsFile, wanted);
    const { mainScript, env } = context;
    return await startDaemon(folder, { settings: wanted, mainScript, env, signal: new AbortController().signal });
  };
  const started = (pid: number) => `process ${pid}`;
  await steps.run(
    "old process",
    () => stopDaemon(folder),
    (outcome) => outcome,
  );
  try {
    await steps.run("platform", () => startWith(settings), started);
  } catch (error) {
    if (JSON.stringify(settings) === JSON.stringify(before)) {
      steps.warn(
        "Sandboxes keep running without the platform. Run ./skerry restart from the previous checkout, or after fixing the cause.",
      );
    } else {
      steps.warn("The platform does not start with these settings. Starting it with the previous ones:");
      await steps.run("platform", () => startWith(before), started);
    }
    throw error;
  }
}

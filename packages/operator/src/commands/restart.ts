// Another version, or other settings, without an end of any sandbox: they do without a daemon, and the next one adopts them.
// Failure policy: whatever can fail before is done while the old daemon still answers. A daemon that does not start with other settings is
// started with those of before; where the code is at fault, sandboxes go on until a checkout that works is started.

import { realpath } from "node:fs/promises";
import {
  type DataFolder,
  dataDirOf,
  dataFolder,
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

/** Replaces the platform's process by one of this checkout, with new settings where some are given. */
export async function restart(context: OperatorContext, options: RestartOptions): Promise<void> {
  const startedAt = performance.now();
  requireRoot("restart");
  const { folder, before } = await lastStarted(dataDirOf(options.data, context.env));
  const settings = resolveSettings(options, context.env, before);
  await interruptible(async (signal) => {
    await using _lock = await takeSetupLock(folder.lockFile);
    const start = { context, folder, settings, steps: createSteps(), signal };
    // While the platform still answers: those that it has itself are free once it is stopped.
    const isRunning = (await findDaemon(folder)) !== undefined;
    await assertPortsFree(settings, (port) => isRunning && (port === before.apiPort || port === before.edgePort));
    await prepareMachine(start);
    signal.throwIfAborted();
    await replaceDaemon(start, before);
    await tryFirstSandbox(start).catch((error: unknown) => {
      start.steps.warn("The platform is up and has its sandboxes, but could not make another one:");
      throw error;
    });
  });
  printConnection(folder, settings, performance.now() - startedAt);
}

async function lastStarted(dataDir: string): Promise<{ folder: DataFolder; before: PlatformSettings }> {
  const root = await realpath(dataDir).catch(() => undefined);
  const folder = root === undefined ? undefined : dataFolder(root);
  const before = folder && (await readSettings(folder));
  if (!before) throw new OperatorError(`there is no platform in ${dataDir}`, { mend: ["To start one: ./skerry up"] });
  return { folder, before };
}

/** Not to be interrupted from here on: it would leave the sandboxes without a platform. */
async function replaceDaemon({ context, folder, settings, steps }: StartOptions, before: PlatformSettings): Promise<void> {
  const startWith = async (wanted: PlatformSettings) => {
    await writeJsonFile(folder.settingsFile, wanted);
    const { mainScript, env } = context;
    return await startDaemon(folder, { settings: wanted, mainScript, env, signal: new AbortController().signal });
  };
  const started = (pid: number) => `process ${pid}`;
  await steps.run(
    "former platform",
    () => stopDaemon(folder),
    (outcome) => outcome,
  );
  try {
    await steps.run("platform", () => startWith(settings), started);
  } catch (error) {
    if (JSON.stringify(settings) === JSON.stringify(before)) {
      steps.warn("Sandboxes go on running. To have them back: ./skerry restart from the checkout of before, or once this is mended.");
    } else {
      steps.warn("It does not start with these settings. With those of before:");
      await steps.run("platform", () => startWith(before), started);
    }
    throw error;
  }
}

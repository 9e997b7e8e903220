// The tests' cache: a data folder of their own, shared by `test`, `bench` and `soak`. A platform in use is not touched.

import { dirname, join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { ensureSoakTemplate, NO_IMAGE, type Steps, setUp, toolEnvironment } from "@skerry/setup";
import { createDataFolder, type DataFolder, dataDirOf, EXIT_CODES, OperatorError, takeSetupLock } from "@skerry/setup/folder";
import { sweepStaleRuns } from "@skerry/test-runner";
import type { OperatorContext } from "../context.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";

export interface Preparation {
  readonly context: OperatorContext;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

export const testCacheDirOf = (env: OperatorContext["env"]): string => env.SKERRY_TEST_CACHE || "/var/cache/skerry-test";

/** Where platforms of tests have their data folders, below the cache. */
export const runsDirOf = (folder: DataFolder): string => join(folder.root, "runs");

/** Aborts on Ctrl-C and SIGTERM, with an OperatorError that has these hints. */
export function interruptSignal(hints: readonly string[] = []): AbortSignal {
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new OperatorError("interrupted", { exit: "interrupted", hints }));
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return interrupt.signal;
}

/** Sets up the cache for platforms of tests. Waits while another run sets it up. */
export async function setUpTestCache({ context, steps, signal }: Preparation, extraPackages: readonly string[] = []): Promise<DataFolder> {
  const { repoRoot, env } = context;
  const folder = await createDataFolder(testCacheDirOf(env));
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const otherDataDir = dataDirOf(undefined, env);
  await setUp(folder, { repoRoot, runtime: "gvisor", baseImage: NO_IMAGE, env, otherDataDir, extraPackages, steps, signal });
  return folder;
}

export async function setUpSoakTemplate({ context, steps, signal }: Preparation, folder: DataFolder): Promise<void> {
  await steps.run(
    "soak template",
    (report) => ensureSoakTemplate(folder, { repoRoot: context.repoRoot, report, signal }),
    ({ template, built }) => `${template.system.distribution}, ${template.system.layer.slice(7, 19)}${built ? ", built" : ""}`,
  );
}

export interface Script {
  /** The command, for messages. */
  readonly command: string;
  /** Path of the program in the repository. */
  readonly path: string;
  readonly args: readonly string[];
  /** Sets up what the program needs beside the cache. */
  prepare?(preparation: Preparation, folder: DataFolder): Promise<void>;
}

/** Runs a program of the repository that starts platforms of its own, then removes what it left, however it ended. */
export async function runScript(context: OperatorContext, script: Script): Promise<void> {
  requireRoot(script.command);
  const signal = interruptSignal();
  const preparation: Preparation = { context, steps: createSteps(), signal };
  const folder = await setUpTestCache(preparation);
  await script.prepare?.(preparation, folder);
  signal.throwIfAborted();
  const child = spawnCommand(process.execPath, [join(context.repoRoot, script.path), ...script.args], {
    cwd: context.repoRoot,
    env: toolEnvironment({ SKERRY_TEST_CACHE: folder.root, PATH: `${dirname(process.execPath)}:${toolEnvironment().PATH}` }),
    stdout: 1,
    stderr: 2,
  });
  signal.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  });
  await sweepStaleRuns(runsDirOf(folder), context.cleanup);
  if (exitCode !== 0) process.exitCode = exitCode ?? EXIT_CODES.interrupted.code;
}

/** `--name=value` for each option that was given. */
export function flagsOf(options: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

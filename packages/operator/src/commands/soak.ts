import { dirname, join } from "node:path";
import { spawnCommand } from "@skerry/base";
import type { Steps } from "@skerry/setup";
import { ensureSoakTemplate, NO_IMAGE, setUp, toolEnvironment } from "@skerry/setup";
import { createDataFolder, type DataFolder, dataDirOf, EXIT_CODES, OperatorError, takeSetupLock } from "@skerry/setup/folder";
import { sweepStaleRuns } from "@skerry/test-runner";
import type { OperatorContext } from "../context.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";
import { testCacheDirOf } from "./test.ts";

export interface RestoreSoakOptions {
  readonly cycles: string;
  readonly forks: string;
  readonly only?: string;
  readonly parallel: string;
  readonly json?: boolean;
}

/** Programs with state, each taken through pauses, resumes and forks, each proving that it is still what it was. */
export async function soakRestore(context: OperatorContext, options: RestoreSoakOptions): Promise<void> {
  if (context.env.SKERRY_RUNTIME === "runc") {
    throw new OperatorError("soak restore is for gVisor: a pause on runc keeps the disk and no memory, so there is nothing to compare", {
      exit: "usage",
      mend: ["Run it without SKERRY_RUNTIME=runc. It starts a platform of its own, beside one in use."],
    });
  }
  await runSoak(context, {
    script: "tests/soak/restore/main.ts",
    args: [
      ...["cycles", "forks", "only", "parallel"].flatMap((name) => {
        const value = options[name as "cycles" | "forks" | "only" | "parallel"];
        return value === undefined ? [] : [`--${name}=${value}`];
      }),
      ...(options.json ? ["--json"] : []),
    ],
    prepare: async (folder, steps, signal) => {
      await steps.run(
        "soak template",
        (report) => ensureSoakTemplate(folder, { repoRoot: context.repoRoot, report, signal }),
        ({ template, built }) => `${template.system.distribution}, ${template.system.layer.slice(7, 19)}${built ? ", made" : ""}`,
      );
    },
  });
}

export interface LifecycleSoakOptions {
  readonly steps: string;
  readonly atOnce: string;
  readonly runtime: string;
  readonly seed?: string;
  readonly json?: boolean;
}

/** Thousands of creates, pauses, resumes and kills, after which nothing may be left. */
export async function soakLifecycle(context: OperatorContext, { steps, atOnce, runtime, seed, json }: LifecycleSoakOptions): Promise<void> {
  await runSoak(context, {
    script: "tests/soak/lifecycle/main.ts",
    args: [
      `--steps=${steps}`,
      `--at-once=${atOnce}`,
      `--runtime=${runtime}`,
      ...(seed === undefined ? [] : [`--seed=${seed}`]),
      ...(json ? ["--json"] : []),
    ],
  });
}

export interface Soak {
  readonly script: string;
  readonly args: readonly string[];
  prepare?(folder: DataFolder, steps: Steps, signal: AbortSignal): Promise<void>;
}

/** Sets up what platforms of tests need, runs the script, and cleans up after it however it ended. */
export async function runSoak(context: OperatorContext, { script, args, prepare }: Soak): Promise<void> {
  requireRoot("soak");
  const interrupt = new AbortController();
  let child: ReturnType<typeof spawnCommand> | undefined;
  const onSignal = () => {
    interrupt.abort(new OperatorError("stopped", { exit: "interrupted" }));
    child?.kill("SIGTERM");
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  const { signal } = interrupt;
  const { repoRoot } = context;
  const folder = await createDataFolder(testCacheDirOf(context.env));
  const steps = createSteps();
  {
    await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
    const otherDataDir = dataDirOf(undefined, context.env);
    await setUp(folder, { repoRoot, runtime: "gvisor", baseImage: NO_IMAGE, otherDataDir, steps, signal });
  }
  await prepare?.(folder, steps, signal);
  signal.throwIfAborted();
  child = spawnCommand(process.execPath, [join(repoRoot, script), ...args], {
    cwd: repoRoot,
    env: toolEnvironment({ SKERRY_TEST_CACHE: folder.root, PATH: `${dirname(process.execPath)}:${toolEnvironment().PATH}` }),
    stdout: 1,
    stderr: 2,
  });
  const ending = child;
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    ending.once("error", reject);
    ending.once("close", (code) => resolve(code));
  });
  await sweepStaleRuns(join(folder.root, "runs"), context.cleanup);
  if (exitCode !== 0) process.exitCode = exitCode ?? EXIT_CODES.interrupted.code;
}

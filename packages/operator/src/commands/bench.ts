import { dirname, join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { NO_IMAGE, setUp, toolEnvironment } from "@skerry/setup";
import { createDataFolder, dataDirOf, EXIT_CODES, takeSetupLock } from "@skerry/setup/folder";
import { sweepStaleRuns } from "@skerry/test-runner";
import type { OperatorContext } from "../context.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";
import { testCacheDirOf } from "./test.ts";

export interface BenchChoice {
  readonly name: string | undefined;
  readonly sizes: { readonly transferMb?: string; readonly largeMb?: string; readonly streams?: string };
}

/** Measures platforms of its own, each beside its peers, and prints a table (stderr) and every number (stdout, JSON). */
export async function bench(context: OperatorContext, choice: BenchChoice): Promise<void> {
  requireRoot("bench");
  const folder = await createDataFolder(testCacheDirOf(context.env));
  {
    await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
    const signal = new AbortController().signal;
    const otherDataDir = dataDirOf(undefined, context.env);
    await setUp(folder, { repoRoot: context.repoRoot, runtime: "gvisor", baseImage: NO_IMAGE, otherDataDir, steps: createSteps(), signal });
  }
  const child = spawnCommand(process.execPath, [join(context.repoRoot, "tests/bench/main.ts"), ...argumentsOf(choice)], {
    cwd: context.repoRoot,
    env: toolEnvironment({ SKERRY_TEST_CACHE: folder.root, PATH: `${dirname(process.execPath)}:${toolEnvironment().PATH}` }),
    stdout: 1,
    stderr: 2,
  });
  const onSignal = () => child.kill("SIGTERM");
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  });
  // A measurement that was interrupted could not tidy up after itself.
  await sweepStaleRuns(join(folder.root, "runs"), context.cleanup);
  if (exitCode !== 0) process.exitCode = exitCode ?? EXIT_CODES.interrupted.code;
}

function argumentsOf({ name, sizes }: BenchChoice): string[] {
  const flags = { "transfer-mb": sizes.transferMb, "large-mb": sizes.largeMb, streams: sizes.streams };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}=${value}`]));
  return name === undefined ? given : [name, ...given];
}

import { dirname, join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { toolEnvironment } from "@skerry/setup";
import { type Tally, tallyResults } from "./tally.ts";
import type { TestDepth } from "./test-files.ts";
import type { TestRun } from "./test-run.ts";

export interface CheckRun {
  readonly repoRoot: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Checks that run no test. Each counts as one test. */
export const STATIC_CHECKS: readonly { readonly name: string; readonly program: string; readonly args: readonly string[] }[] = [
  { name: "format", program: "@biomejs/biome/bin/biome", args: ["format", "."] },
  { name: "lint", program: "@biomejs/biome/bin/biome", args: ["lint", "--error-on-warnings", "."] },
  { name: "types", program: "typescript/bin/tsc", args: ["--noEmit"] },
];

export async function runStaticCheck(check: (typeof STATIC_CHECKS)[number], run: CheckRun): Promise<Tally> {
  const exitCode = await runShown(check.program, check.args, run);
  return exitCode === 0
    ? { passed: 1, failed: 0, failures: [] }
    : { passed: 0, failed: 1, failures: [`${check.name} (exit code ${exitCode})`] };
}

/** Runs the planned files in one Vitest process, whose output goes to the terminal. */
export async function runPlan(testRun: TestRun, depth: TestDepth, run: CheckRun): Promise<Tally> {
  const { files } = testRun.readPlan();
  if (files.length === 0) return { passed: 0, failed: 0, failures: [] };
  const env = { ...run.env, SKERRY_TEST_RUN: testRun.dir, SKERRY_TEST_DEPTH: depth };
  const exitCode = await runShown("vitest/vitest.mjs", ["run", ...files], { ...run, env });
  run.signal.throwIfAborted();
  return tallyResults(testRun.readResults(), files, exitCode);
}

/** Runs a program of node_modules with this Node.js. Its output goes to the terminal. */
async function runShown(program: string, args: readonly string[], { repoRoot, env, signal }: CheckRun): Promise<number | null> {
  const binDir = join(repoRoot, "node_modules/.bin");
  const child = spawnCommand(process.execPath, [join(repoRoot, "node_modules", program), ...args], {
    cwd: repoRoot,
    env: { ...toolEnvironment(env), PATH: `${dirname(process.execPath)}:${binDir}:${toolEnvironment().PATH}` },
    stdout: 1,
    stderr: 2,
  });
  const onAbort = () => child.kill("SIGTERM");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  }).finally(() => signal.removeEventListener("abort", onAbort));
}

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { toolEnvironment } from "../setup/tool-environment.ts";
import { type Tally, tallyReport, type VitestReport } from "./tally.ts";

export interface CheckRun {
  readonly repoRoot: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The checks that need no running anything: each counts as one test. */
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

/** Runs one Vitest project, shows its output as it comes, and counts from its JSON report. */
export async function runVitestProject(project: string, pattern: string | undefined, run: CheckRun): Promise<Tally> {
  const dir = await mkdtemp(join(tmpdir(), "skerry-report-"));
  try {
    const report = join(dir, "report.json");
    const args = ["run", "--project", project, "--passWithNoTests", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const exitCode = await runShown("vitest/vitest.mjs", pattern === undefined ? args : [...args, pattern], run);
    run.signal.throwIfAborted();
    const text = await readFile(report, "utf8").catch(() => undefined);
    if (text === undefined)
      return { passed: 0, failed: 1, failures: [`${project}: the test runner wrote no report (exit code ${exitCode})`] };
    return tallyReport(JSON.parse(text) as VitestReport, exitCode);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Runs a program of node_modules with our own Node.js, its output straight to the terminal. */
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

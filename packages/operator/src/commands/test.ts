import { readdir } from "node:fs/promises";
import { TEST_PACKAGES } from "@skerry/setup";
import { type DataFolder, EXIT_CODES, takeSetupLock } from "@skerry/setup/folder";
import {
  type CheckRun,
  describeScope,
  ensureInterpreterPython,
  ensurePromtool,
  ensurePythonSdk,
  ensureTestRegistry,
  runPlan,
  runStaticCheck,
  STATIC_CHECKS,
  saveMeasured,
  selectTests,
  sumTallies,
  sweepStaleRuns,
  type Tally,
} from "@skerry/test-runner";
import type { OperatorContext } from "../context.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";
import { formatDuration, painter } from "../terminal/text.ts";
import { interruptSignal, type Preparation, runsDirOf, setUpSoakTemplate, setUpTestCache, testCacheDirOf } from "./test-cache.ts";

export interface TestOptions {
  /** Runs every case of every matrix instead of a sample. */
  readonly all?: boolean;
  /** "2/4": the second of four parts, which take about equally long. */
  readonly part?: string;
  /** Skips files that have passed at this depth since the checkout last changed. */
  readonly resume?: boolean;
  /** Records how long each file took, for the order and the parts of later runs. */
  readonly saveDurations?: boolean;
}

/** Sets up what the tests need, then runs them. A pattern limits the run to test files whose path contains it. */
export async function test(context: OperatorContext, pattern: string | undefined, options: TestOptions = {}): Promise<void> {
  const startedAt = performance.now();
  requireRoot("test");
  const signal = interruptSignal(["To continue, run the same command with --resume."]);
  const steps = createSteps();
  const selection = await selectTests({ repoRoot: context.repoRoot, cacheDir: testCacheDirOf(context.env), pattern, options });
  const { folder, run } = await prepare({ context, steps, signal }, pattern);
  const sweep = () => sweepStaleRuns(runsDirOf(folder), context.cleanup);
  await steps.run("earlier runs", sweep, (swept) => (swept.length === 0 ? "nothing left" : `removed leftovers of ${swept.length}`));
  // What the sweep left belongs to other runs: one that goes on, or one that was killed a moment ago.
  const others = new Set(await readdir(runsDirOf(folder)).catch(() => []));
  const tallies: Tally[] = [];
  const part = async (name: string, work: () => Promise<Tally>) => {
    process.stdout.write(`\n${painter(process.stdout)("strong", `── ${name}`)}\n`);
    const partStartedAt = performance.now();
    const tally = await work();
    signal.throwIfAborted();
    process.stdout.write(
      `── ${name}: ${tally.passed} passed, ${tally.failed} failed (${formatDuration(performance.now() - partStartedAt)})\n`,
    );
    tallies.push(tally);
  };
  if (selection.withStaticChecks) for (const check of STATIC_CHECKS) await part(check.name, () => runStaticCheck(check, run));
  await part("tests", () => runPlan(selection.run, selection.depth, run));
  await part("leftovers", async () => leftovers((await sweep()).filter((name) => !others.has(name))));
  if (options.saveDurations) saveMeasured(context.repoRoot, selection);
  summarise(sumTallies(tallies), performance.now() - startedAt, describeScope(selection));
}

async function prepare(preparation: Preparation, pattern: string | undefined): Promise<{ folder: DataFolder; run: CheckRun }> {
  const { context, steps, signal } = preparation;
  const folder = await setUpTestCache(preparation, Object.keys(TEST_PACKAGES));
  {
    await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
    await steps.run(
      "Python SDK",
      (report) => ensurePythonSdk(folder.root, { report, signal }),
      ({ version }) => `e2b ${version}`,
    );
    await steps.run(
      "Jupyter kernels",
      (report) => ensureInterpreterPython(folder.root, { report, signal }),
      (python) => python,
    );
    await steps.run(
      "test registry",
      (report) => ensureTestRegistry(folder.root, { report, signal }),
      ({ binary }) => binary,
    );
    await steps.run(
      "promtool",
      (report) => ensurePromtool(folder.root, { report, signal }),
      ({ binary }) => binary,
    );
  }
  // Takes minutes when it has to be built. A run of selected files builds it only if one of them asks for it.
  if (pattern === undefined) await setUpSoakTemplate(preparation, folder);
  const run: CheckRun = {
    repoRoot: context.repoRoot,
    signal,
    env: {
      SKERRY_TEST_CACHE: folder.root,
      NODE_COMPILE_CACHE: folder.compileCacheDir,
      ...(context.env.CI !== undefined && { CI: context.env.CI }),
      ...(process.stdout.isTTY && context.env.NO_COLOR === undefined ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
    },
  };
  return { folder, run };
}

function leftovers(swept: readonly string[]): Tally {
  if (swept.length === 0) return { passed: 1, failed: 0, failures: [] };
  return { passed: 0, failed: 1, failures: swept.map((name) => `the platform of test ${name} was not removed`) };
}

/** The last line, `N passed, N failed`, is stable: programs parse it. */
function summarise(total: Tally, elapsedMs: number, scope: readonly string[]): void {
  const paint = painter(process.stdout);
  const lines = [
    "",
    ...scope,
    `took ${formatDuration(elapsedMs)}`,
    ...total.failures.map((failure) => `${paint("bad", "failed")} ${failure}`),
  ];
  process.stdout.write(`${lines.join("\n")}\n${total.passed} passed, ${total.failed} failed\n`);
  if (total.failed > 0 || total.passed === 0) process.exitCode = EXIT_CODES.failed.code;
}

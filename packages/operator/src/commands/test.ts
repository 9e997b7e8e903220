import { join } from "node:path";
import type { Steps } from "@skerry/setup";
import { ensureSoakTemplate, NO_IMAGE, setUp, TEST_PACKAGES } from "@skerry/setup";
import { createDataFolder, dataDirOf, EXIT_CODES, OperatorError, takeSetupLock } from "@skerry/setup/folder";
import {
  type CheckRun,
  describeScope,
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
import { formatDuration } from "../terminal/duration.ts";
import { createSteps } from "../terminal/steps.ts";
import { painter } from "../terminal/style.ts";

export const testCacheDirOf = (env: OperatorContext["env"]): string => env.SKERRY_TEST_CACHE || "/var/cache/skerry-test";

export interface TestOptions {
  /** Every case of every matrix instead of a sample of each. */
  readonly all?: boolean;
  /** "2/4": the second of four parts that take about equally long. */
  readonly part?: string;
  /** Leaves out files that have passed at this depth since the checkout last changed. */
  readonly resume?: boolean;
  /** Writes how long each file took into the repository, for the order and the parts of later runs. */
  readonly saveDurations?: boolean;
}

/** Runs the tests, after setting up what they need. A pattern limits them to test files whose path contains it. */
export async function test(context: OperatorContext, pattern: string | undefined, options: TestOptions = {}): Promise<void> {
  const startedAt = performance.now();
  requireRoot("test");
  const interrupt = new AbortController();
  const onSignal = () =>
    interrupt.abort(new OperatorError("stopped", { exit: "interrupted", mend: ["To go on from here: the same command with --resume"] }));
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  const { signal } = interrupt;
  const steps = createSteps();
  const cacheDir = testCacheDirOf(context.env);
  const runsDir = join(cacheDir, "runs");
  const selection = await selectTests({ repoRoot: context.repoRoot, cacheDir, pattern, options });
  const run = await prepare({ context, cacheDir, steps, signal });
  // It takes minutes when it is made: a run of single files makes it only if one of them asks for it.
  if (pattern === undefined) await prepareSoak({ context, cacheDir, steps, signal });
  await steps.run(
    "earlier runs",
    () => sweepStaleRuns(runsDir, context.cleanup),
    (swept) => (swept.length === 0 ? "left nothing" : `removed what ${swept.length} had left`),
  );
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
  await part("nothing left on this machine", async () => leftovers(await sweepStaleRuns(runsDir, context.cleanup)));
  if (options.saveDurations) saveMeasured(context.repoRoot, selection);
  summarise(sumTallies(tallies), performance.now() - startedAt, describeScope(selection));
}

interface Preparation {
  readonly context: OperatorContext;
  readonly cacheDir: string;
  readonly steps: Steps;
  readonly signal: AbortSignal;
}

async function prepareSoak({ context, cacheDir, steps, signal }: Preparation): Promise<void> {
  const folder = await createDataFolder(cacheDir);
  await steps.run(
    "soak template",
    (report) => ensureSoakTemplate(folder, { repoRoot: context.repoRoot, report, signal }),
    ({ template, built }) => `${template.system.distribution}, ${template.system.layer.slice(7, 19)}${built ? ", made" : ""}`,
  );
}

async function prepare(options: Preparation): Promise<CheckRun> {
  const { context, cacheDir, steps, signal } = options;
  const folder = await createDataFolder(cacheDir);
  await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
  const { repoRoot } = context;
  const otherDataDir = dataDirOf(undefined, context.env);
  await setUp(folder, {
    repoRoot,
    runtime: "gvisor",
    baseImage: NO_IMAGE,
    otherDataDir,
    extraPackages: Object.keys(TEST_PACKAGES),
    steps,
    signal,
  });
  await steps.run(
    "Python SDK",
    (report) => ensurePythonSdk(folder.root, { report, signal }),
    ({ version }) => `e2b ${version}`,
  );
  await steps.run(
    "test registry",
    (report) => ensureTestRegistry(folder.root, { report, signal }),
    ({ binary }) => binary,
  );
  return {
    repoRoot,
    signal,
    env: {
      SKERRY_TEST_CACHE: folder.root,
      NODE_COMPILE_CACHE: folder.compileCacheDir,
      ...(context.env.CI !== undefined && { CI: context.env.CI }),
      ...(process.stdout.isTTY && context.env.NO_COLOR === undefined ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
    },
  };
}

function leftovers(swept: readonly string[]): Tally {
  if (swept.length === 0) return { passed: 1, failed: 0, failures: [] };
  return { passed: 0, failed: 1, failures: swept.map((name) => `the platform of test ${name} was not cleaned up`) };
}

/** The last line is for programs: `N passed, N failed`. */
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

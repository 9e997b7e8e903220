// Selects the files of a run, and describes what the run leaves out.

import { OperatorError } from "@skerry/setup/folder";
import { createRun, identifyTree, readPassedFiles } from "./passed-files.ts";
import { filesOfPart, listTestFiles, type Part, readDurations, saveDurations, slowestFirst, type TestDepth } from "./test-files.ts";
import type { LeftOut, TestRun } from "./test-run.ts";

export interface Selection {
  readonly depth: TestDepth;
  readonly run: TestRun;
  /** Whether the run checks format, lint and types: not in a run of selected files, and only in the first of several parts. */
  readonly withStaticChecks: boolean;
  readonly part: Part | undefined;
  /** Number of files that passed before and do not run again. */
  readonly resumed: number;
}

export interface SelectionOptions {
  readonly repoRoot: string;
  readonly cacheDir: string;
  readonly pattern: string | undefined;
  readonly options: { readonly all?: boolean; readonly part?: string; readonly resume?: boolean; readonly saveDurations?: boolean };
}

/** Selects the files and writes them as the plan of a new run. Throws OperatorError if there are none. */
export async function selectTests({ repoRoot, cacheDir, pattern, options }: SelectionOptions): Promise<Selection> {
  const depth = options.all ? "full" : "sample";
  const part = parsePart(options.part);
  if (part && options.saveDurations) {
    throw new OperatorError("--save-durations cannot be combined with --part, because it changes how the tests are divided", {
      exit: "usage",
      hints: ["Run it without --part."],
    });
  }
  const tree = await identifyTree(repoRoot).catch((error: unknown) => {
    if (options.resume) throw error;
    return "unknown";
  });
  const durations = readDurations(repoRoot, depth);
  // Parts are computed from all matching files, so that they do not depend on what has passed.
  const matching = listTestFiles(repoRoot).filter((file) => pattern === undefined || file.includes(pattern));
  if (matching.length === 0) throw new OperatorError(`no test file matches "${pattern}"`, { exit: "usage" });
  const selected = part ? filesOfPart(matching, durations, part) : matching;
  const passed = options.resume ? readPassedFiles(cacheDir, { depth, tree }) : new Set<string>();
  const files = slowestFirst(
    selected.filter((file) => !passed.has(file)),
    durations,
  );
  const run = createRun(cacheDir, { depth, tree });
  run.writePlan({ files });
  return {
    depth,
    run,
    part,
    withStaticChecks: pattern === undefined && (part === undefined || part.number === 1),
    resumed: selected.length - files.length,
  };
}

/** One line for each thing that the run did not test. */
export function describeScope({ run, depth, part, resumed }: Selection): string[] {
  return [
    ...(part ? [`left out: the other parts (this was part ${part.number} of ${part.of})`] : []),
    ...(resumed > 0 ? [`left out: ${resumed} files that passed in an earlier run`] : []),
    ...describeLeftOut(run.readLeftOut()),
    ...(depth === "sample" ? ["(./skerry test --all runs everything)"] : []),
  ];
}

export function saveMeasured(repoRoot: string, { run, depth }: Selection): void {
  saveDurations(repoRoot, depth, new Map(run.readResults().map(({ file, seconds }) => [file, seconds])));
}

/** One line for each matrix or count, with the suites that left out the same part of it. Several files may scale the same count. */
function describeLeftOut(leftOut: readonly LeftOut[]): string[] {
  const suitesByLine = new Map<string, Set<string>>();
  for (const { what, suite, ran, of } of leftOut) {
    const line = `left out: ${of - ran} of ${of} ${what}`;
    const suites = suitesByLine.get(line) ?? new Set();
    if (suite !== undefined) suites.add(suite);
    suitesByLine.set(line, suites);
  }
  const lines = [...suitesByLine].map(([line, suites]) => (suites.size === 0 ? line : `${line} in: ${[...suites].sort().join(", ")}`));
  return lines.sort();
}

function parsePart(text: string | undefined): Part | undefined {
  if (text === undefined) return undefined;
  const [, number, of] = /^([1-9]\d?)\/([1-9]\d?)$/.exec(text) ?? [];
  const part = { number: Number(number), of: Number(of) };
  if (number === undefined || part.number > part.of) {
    throw new OperatorError(`invalid part "${text}": --part takes k/n, such as 2/4`, { exit: "usage" });
  }
  return part;
}

// What a run of `./skerry test` takes of all there is, and what it leaves out.

import { OperatorError } from "@skerry/setup/folder";
import { createRun, identifyTree, readPassedFiles } from "./passed-files.ts";
import { filesOfPart, listTestFiles, type Part, readDurations, saveDurations, slowestFirst, type TestDepth } from "./test-files.ts";
import type { LeftOut, TestRun } from "./test-run.ts";

export interface Selection {
  readonly depth: TestDepth;
  readonly run: TestRun;
  /** Format, lint and types: not in a run of single files, and only in the first of several parts. */
  readonly withStaticChecks: boolean;
  readonly part: Part | undefined;
  /** How many files passed before and are not run again. */
  readonly resumed: number;
}

export interface SelectionOptions {
  readonly repoRoot: string;
  readonly cacheDir: string;
  readonly pattern: string | undefined;
  readonly options: { readonly all?: boolean; readonly part?: string; readonly resume?: boolean; readonly saveDurations?: boolean };
}

/** Decides what is run, and writes it down as the plan of a new run. Throws when nothing is selected. */
export async function selectTests({ repoRoot, cacheDir, pattern, options }: SelectionOptions): Promise<Selection> {
  const depth = options.all ? "full" : "sample";
  const part = parsePart(options.part);
  if (part && options.saveDurations) {
    throw new OperatorError(
      "--save-durations changes how the tests are divided, so the parts of this run would not fit together any more",
      {
        exit: "usage",
        mend: ["Save durations in a run without --part."],
      },
    );
  }
  const tree = await identifyTree(repoRoot).catch((error: unknown) => {
    if (options.resume) throw error;
    return "unknown";
  });
  const durations = readDurations(repoRoot, depth);
  // Parts are made of all files, so that they are the same whatever has passed and in whatever order they are run.
  const matching = listTestFiles(repoRoot).filter((file) => pattern === undefined || file.includes(pattern));
  if (matching.length === 0) throw new OperatorError(`no test file has "${pattern}" in its path`, { exit: "usage" });
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

/** For people: what this run did not test, one line each. */
export function describeScope({ run, depth, part, resumed }: Selection): string[] {
  return [
    ...(part ? [`left out: the other parts (this was ${part.number} of ${part.of})`] : []),
    ...(resumed > 0 ? [`left out: ${resumed} files that passed before`] : []),
    ...describeLeftOut(run.readLeftOut()),
    ...(depth === "sample" ? ["(./skerry test --all leaves nothing out)"] : []),
  ];
}

export function saveMeasured(repoRoot: string, { run, depth }: Selection): void {
  saveDurations(repoRoot, depth, new Map(run.readResults().map(({ file, seconds }) => [file, seconds])));
}

/** One line for each thing, with all suites that left out the same of it. Several files may scale the same thing. */
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
    throw new OperatorError(`--part takes "k/n", such as 2/4: the second of four parts; not "${text}"`, { exit: "usage" });
  }
  return part;
}

import type { FileResult } from "./test-run.ts";

/** How a part of the test run went. Skipped tests count as failed: a machine that lacks something has not passed. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** What failed, one line each. */
  readonly failures: readonly string[];
}

/** `wanted`: the files that the test runner was given. One that it never reported, for whatever reason, has failed. */
export function tallyResults(results: readonly FileResult[], wanted: readonly string[], exitCode: number | null): Tally {
  const reported = new Set(results.map(({ file }) => file));
  const failures = [
    ...results.flatMap(({ file, failures: lines }) => lines.map((line) => `${file}: ${line}`)),
    ...wanted.filter((file) => !reported.has(file)).map((file) => `${file}: not run`),
  ];
  // Errors outside any test (an unhandled rejection, a failed global set-up) show in the exit code alone.
  if (exitCode !== 0 && failures.length === 0) failures.push(`the test runner ended with exit code ${exitCode}`);
  return { passed: results.reduce((sum, { passed }) => sum + passed, 0), failed: failures.length, failures };
}

export function sumTallies(tallies: readonly Tally[]): Tally {
  return {
    passed: tallies.reduce((sum, tally) => sum + tally.passed, 0),
    failed: tallies.reduce((sum, tally) => sum + tally.failed, 0),
    failures: tallies.flatMap((tally) => tally.failures),
  };
}

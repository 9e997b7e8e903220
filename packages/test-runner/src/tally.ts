import type { FileResult } from "./test-run.ts";

/** The result of one part of a run. Skipped tests count as failed: on a host that lacks something, the tests have not passed. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** One line for each failure. */
  readonly failures: readonly string[];
}

/** `wanted`: the files that Vitest was to run. A file without a result has failed. */
export function tallyResults(results: readonly FileResult[], wanted: readonly string[], exitCode: number | null): Tally {
  const reported = new Set(results.map(({ file }) => file));
  const failures = [
    ...results.flatMap(({ file, failures: lines }) => lines.map((line) => `${file}: ${line}`)),
    ...wanted.filter((file) => !reported.has(file)).map((file) => `${file}: not run`),
  ];
  // Errors outside of tests, such as an unhandled rejection, show in the exit code alone.
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

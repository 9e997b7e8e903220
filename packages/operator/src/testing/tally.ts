/** How a part of the test run went. Skipped tests count as failed: a machine that lacks something has not passed. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** What failed, one line each. */
  readonly failures: readonly string[];
}

/** The parts of Vitest's JSON report that are read here. */
export interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

export function tallyReport(report: VitestReport, exitCode: number | null): Tally {
  let passed = 0;
  const failures: string[] = [];
  for (const file of report.testResults) {
    for (const { fullName, status } of file.assertionResults) {
      if (status === "passed") passed++;
      else failures.push(`${file.name}: ${fullName}${status === "failed" ? "" : ` (${status})`}`);
    }
    const silent = file.status === "failed" && file.assertionResults.every(({ status }) => status === "passed");
    if (silent) failures.push(`${file.name}: ${(file.message ?? "the file could not be run").split("\n")[0]}`);
  }
  // Errors outside any test (an unhandled rejection) show in the exit code alone.
  if (exitCode !== 0 && failures.length === 0) failures.push(`the test runner ended with exit code ${exitCode}`);
  return { passed, failed: failures.length, failures };
}

export function sumTallies(tallies: readonly Tally[]): Tally {
  return {
    passed: tallies.reduce((sum, tally) => sum + tally.passed, 0),
    failed: tallies.reduce((sum, tally) => sum + tally.failed, 0),
    failures: tallies.flatMap((tally) => tally.failures),
  };
}

import { distribution } from "../../bench/statistics.ts";
import { type Cycle, mebibytes, seconds, type WorkloadResult } from "./run-workload.ts";
import { WORKLOADS } from "./workloads.ts";

const HEAD = ["", "start", "cycles", "pause p50", "max", "resume p50", "max", "check p50", "max", "image MiB", "forks", "fork of", "in"];

/** The final table, and each failure with lines of the logs. */
export function formatResults(results: readonly WorkloadResult[]): string {
  const rows = [HEAD, ...results.map(rowOf)];
  const widths = HEAD.map((_name, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "),
  );
  const failures = results.flatMap(({ workload, failure }) =>
    failure ? [`${workload} FAILED at ${failure.at}: ${failure.difference}`, ...failure.found.map((line) => `    ${line}`)] : [],
  );
  const verdict = failures.length === 0 ? ["all checks passed"] : failures;
  return `${[...lines, "", ...verdict].join("\n")}\n`;
}

function rowOf({ workload, startMs, cycles, forks }: WorkloadResult): string[] {
  const title = WORKLOADS.find(({ name }) => name === workload)?.title ?? workload;
  const pair = (of: (cycle: Cycle) => number) => {
    if (cycles.length === 0) return ["-", "-"];
    const { p50, max } = distribution(cycles.map(of));
    return [seconds(p50), seconds(max)];
  };
  const image = cycles.at(-1)?.imageBytes;
  const most = forks.toSorted((a, b) => b.count - a.count)[0];
  return [
    title,
    seconds(startMs),
    String(cycles.length),
    ...pair(({ pauseMs }) => pauseMs),
    ...pair(({ resumeMs }) => resumeMs),
    ...pair(({ checkMs }) => checkMs),
    image === undefined ? "-" : String(mebibytes(image)),
    String(forks.reduce((sum, { count }) => sum + count, 0)),
    most ? String(most.count) : "-",
    most ? seconds(most.forkMs) : "-",
  ];
}

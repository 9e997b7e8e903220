// ./skerry soak restore: prints progress to stderr, and to stdout a table, or JSON with --json.

import { parseArgs } from "node:util";
import { formatResults } from "./format-results.ts";
import { runWorkloads } from "./run-workload.ts";
import { startSoakPlatform } from "./soak-platform.ts";
import { WORKLOADS, type Workload } from "./workloads.ts";

const { values } = parseArgs({
  options: {
    cycles: { type: "string", default: "100" },
    forks: { type: "string", default: "16" },
    only: { type: "string" },
    parallel: { type: "string", default: "2" },
    json: { type: "boolean", default: false },
  },
});

const interrupt = new AbortController();
process.on("SIGINT", () => interrupt.abort()).on("SIGTERM", () => interrupt.abort());
process.exitCode = await soak(interrupt.signal);

async function soak(signal: AbortSignal): Promise<number> {
  const chosen = choose(values.only);
  const plan = { cycles: count("cycles", values.cycles, 0), forks: count("forks", values.forks, 0) };
  const parallel = count("parallel", values.parallel, 1);
  const { platform, template } = await startSoakPlatform();
  await using _platform = platform;
  const seen = new Set<string>();
  const report = ({ name }: Workload, text: string) => process.stderr.write(`${name.padEnd(9)} ${text}\n`);
  const all = runWorkloads(chosen, parallel, { platform, template, plan, seen, signal, report });
  const aborted = Promise.withResolvers<"aborted">();
  signal.addEventListener("abort", () => aborted.resolve("aborted"), { once: true });
  const results = signal.aborted ? "aborted" : await Promise.race([all, aborted.promise]);
  if (results === "aborted") {
    // Work in progress fails when the platform stops.
    all.catch(() => {});
    process.stderr.write("interrupted; cleaning up\n");
    return 130;
  }
  process.stdout.write(values.json ? `${JSON.stringify({ plan, results })}\n` : formatResults(results));
  return results.some(({ failure }) => failure) ? 1 : 0;
}

function choose(only: string | undefined): readonly Workload[] {
  if (only === undefined) return WORKLOADS;
  const names = only.split(",");
  const unknown = names.filter((name) => !WORKLOADS.some((workload) => workload.name === name));
  if (unknown.length > 0) refuse(`unknown program "${unknown[0]}": use ${WORKLOADS.map(({ name }) => name).join(", ")}`);
  return WORKLOADS.filter(({ name }) => names.includes(name));
}

function count(name: string, text: string, least: number): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) < least) refuse(`invalid --${name}: use a number of at least ${least}`);
  return Number(text);
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}

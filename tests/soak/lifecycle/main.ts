// ./skerry soak lifecycle: prints progress to stderr, and to stdout a table, or JSON with --json.

import { parseArgs } from "node:util";
import { soakLifecycle } from "./soak-lifecycle.ts";

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "10000" },
    "at-once": { type: "string", default: "8" },
    runtime: { type: "string", default: "gvisor" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    json: { type: "boolean", default: false },
  },
});

const interrupt = new AbortController();
process.on("SIGINT", () => interrupt.abort()).on("SIGTERM", () => interrupt.abort());
process.exitCode = await main(interrupt.signal);

async function main(signal: AbortSignal): Promise<number> {
  const runtime = values.runtime;
  if (runtime !== "gvisor" && runtime !== "runc") refuse("invalid --runtime: use gvisor or runc");
  const seed = count("seed", values.seed, 0);
  process.stderr.write(`seed ${seed}\n`);
  try {
    const result = await soakLifecycle({
      steps: count("steps", values.steps, 1),
      atOnce: count("at-once", values["at-once"], 1),
      seed,
      runtime,
      signal,
      onProgress: (line) => process.stderr.write(`${line}\n`),
    });
    if (signal.aborted) return 130;
    process.stdout.write(values.json ? `${JSON.stringify({ runtime, seed, ...result })}\n` : table(result));
    return 0;
  } catch (error) {
    if (signal.aborted) return 130;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n(--seed ${seed} repeats these steps)\n`);
    return 1;
  }
}

function table({ steps, memoryMb, durationMs }: Awaited<ReturnType<typeof soakLifecycle>>): string {
  const rows = Object.entries(steps).map(
    ([step, { count: times, p50Ms, p99Ms }]) =>
      `${step.padEnd(7)} ${String(times).padStart(6)} ${String(p50Ms).padStart(8)} ${String(p99Ms).padStart(8)}`,
  );
  const memory = `platform memory: ${memoryMb.afterWarmUp} MiB after the first steps, ${memoryMb.atMost} MiB at most, ${memoryMb.atEnd} MiB at the end`;
  const header = `${"step".padEnd(7)} ${"count".padStart(6)} ${"p50 ms".padStart(8)} ${"p99 ms".padStart(8)}`;
  return [header, ...rows, memory, `no leftovers; took ${Math.round(durationMs / 1000)} s`, ""].join("\n");
}

function count(name: string, text: string, least: number): number {
  if (!/^\d{1,7}$/.test(text) || Number(text) < least) refuse(`invalid --${name}: use a number of at least ${least}`);
  return Number(text);
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}

// Host memory per idle sandbox: what MemAvailable loses when 20 of them are there, the agent running in each.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { instanceOf, startPlatform } from "@skerry/testkit";
import { BARE_RUNTIMES, openBare } from "./bare.ts";
import type { Bench, Row } from "./bench.ts";
import { processMemoryMiB } from "./process-memory.ts";
import { createSandbox, echo } from "./sdk.ts";

const COUNT = 20;
const SETTLE_MS = 5_000;

export const memory: Bench = {
  name: "memory",
  title: `Host memory per idle sandbox (${COUNT} of them), MiB`,
  async run() {
    const rows: Row[] = [];
    for (const runtime of ["gvisor", "runc"] as const) {
      await using platform = await startPlatform({ runtime });
      const add = async () => echo(await createSandbox(platform));
      rows.push(...(await measure(`skerry on ${runtime}`, new RegExp(`skerry-${instanceOf(platform.dataDir)}/`), add)));
    }
    for (const name of BARE_RUNTIMES) {
      await using bare = await openBare(name);
      rows.push(...(await measure(`bare ${name}, sleep`, bare.processes, () => bare.start())));
    }
    return { rows, notes: ["host: the difference of MemAvailable; processes: the sum of their PSS; both divided by the number"] };
  },
};

/** The first one brings files into the page cache that all of them share: it does not count. */
async function measure(name: string, processes: RegExp, add: () => Promise<unknown>): Promise<Row[]> {
  await add();
  const read = () => ({ available: availableMiB(), used: processMemoryMiB(processes) });
  await sleep(SETTLE_MS);
  const before = read();
  for (let made = 0; made < COUNT; made++) await add();
  await sleep(SETTLE_MS);
  const after = read();
  return [
    row(`${name}: host`, (before.available - after.available) / COUNT),
    row(`${name}: processes`, (after.used - before.used) / COUNT),
  ];
}

const row = (name: string, value: number): Row => ({
  name,
  unit: "MiB",
  count: 1,
  p50: value,
  p95: value,
  p99: value,
  min: value,
  max: value,
  samples: [value],
});

function availableMiB(): number {
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
}

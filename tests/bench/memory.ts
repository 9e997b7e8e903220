// Host memory per idle sandbox: what MemAvailable loses when 20 of them are there, the agent running in each.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startPlatform } from "@skerry/testkit";
import { BARE_RUNTIMES, openBare } from "./bare.ts";
import type { Bench, Row } from "./bench.ts";
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
      // The first one brings files into the page cache that all of them share.
      const first = await createSandbox(platform);
      await echo(first);
      const perSandbox = await lost(async () => {
        for (let made = 0; made < COUNT; made++) await echo(await createSandbox(platform));
      });
      rows.push(row(`skerry on ${runtime}`, perSandbox));
    }
    for (const name of BARE_RUNTIMES) {
      await using bare = await openBare(name);
      await bare.start();
      const perContainer = await lost(async () => {
        for (let made = 0; made < COUNT; made++) await bare.start();
      });
      rows.push(row(`bare ${name}, sleep`, perContainer));
    }
    return { rows, notes: ["one figure each: the difference of MemAvailable before and after, divided by the number"] };
  },
};

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

async function lost(work: () => Promise<void>): Promise<number> {
  await sleep(SETTLE_MS);
  const before = availableMiB();
  await work();
  await sleep(SETTLE_MS);
  return (before - availableMiB()) / COUNT;
}

function availableMiB(): number {
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
}

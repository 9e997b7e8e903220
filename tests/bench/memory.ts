// Host memory per idle sandbox: how much MemAvailable decreases with 20 sandboxes, each with a running agent.

import { setTimeout as sleep } from "node:timers/promises";
import { instanceOf, startPlatform } from "@skerry/testkit";
import { BARE_RUNTIMES, openBare } from "./bare.ts";
import type { Bench, Row } from "./bench.ts";
import { availableMiB, processMemoryMiB } from "./host-usage.ts";
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
    return { rows, notes: ["host: decrease of MemAvailable; processes: sum of their PSS; both divided by the number of sandboxes"] };
  },
};

/** The first sandbox does not count, because it loads files into the page cache that all of them share. */
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

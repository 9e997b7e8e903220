import { startPlatform } from "@skerry/testkit";
import { BARE_RUNTIMES, openBare } from "./bare.ts";
import type { Bench, Row } from "./bench.ts";
import { createSandbox, echo } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const ROUNDS = 100;
const WARM_UP = 5;

async function sample(once: () => Promise<void>): Promise<number[]> {
  const samples: number[] = [];
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const elapsed = await timed(once);
    if (round >= 0) samples.push(elapsed);
  }
  return samples;
}

/** One command in a running sandbox, compared with `exec` of the bare runtimes. */
export const roundtrip: Bench = {
  name: "roundtrip",
  title: "Round trip of one command (echo) in a running sandbox, ms",
  async run() {
    const rows: Row[] = [];
    for (const runtime of ["gvisor", "runc"] as const) {
      await using platform = await startPlatform({ runtime });
      const sandbox = await createSandbox(platform);
      const samples = await sample(() => echo(sandbox));
      await sandbox.kill();
      rows.push({ name: `skerry on ${runtime}, SDK`, unit: "ms", ...distribution(samples), samples });
    }
    for (const name of BARE_RUNTIMES) {
      await using bare = await openBare(name);
      const container = await bare.start();
      const samples = await sample(() => container.exec());
      rows.push({ name: `bare ${name} exec`, unit: "ms", ...distribution(samples), samples });
    }
    return { rows, notes: [] };
  },
};

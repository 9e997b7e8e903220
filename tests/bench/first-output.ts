// Time to first output: create plus `echo` through the official SDK, compared with `run` of /bin/echo by the bare runtimes. The contenders
// take turns, so that other load on the host affects all of them alike.

import { startPlatform } from "@skerry/testkit";
import { openBare } from "./bare.ts";
import type { Bench } from "./bench.ts";
import { createSandbox, echo } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const ROUNDS = 30;
const WARM_UP = 3;

export const firstOutput: Bench = {
  name: "first-output",
  title: "Time to first output, ms (create + echo)",
  async run() {
    await using gvisor = await startPlatform({ runtime: "gvisor" });
    await using runc = await startPlatform({ runtime: "runc" });
    await using bareRunsc = await openBare("runsc");
    await using bareRunc = await openBare("runc");
    const throughSdk = (platform: typeof gvisor) => async () => {
      const startedAt = performance.now();
      const sandbox = await createSandbox(platform);
      await echo(sandbox);
      const elapsed = performance.now() - startedAt;
      await sandbox.kill();
      return elapsed;
    };
    const contenders = new Map<string, () => Promise<number>>([
      ["skerry on gvisor, SDK", throughSdk(gvisor)],
      ["bare runsc run", () => timed(() => bareRunsc.run())],
      ["skerry on runc, SDK", throughSdk(runc)],
      ["bare runc run", () => timed(() => bareRunc.run())],
    ]);
    const samples = new Map([...contenders.keys()].map((name) => [name, [] as number[]]));
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      for (const [name, once] of contenders) {
        const elapsed = await once();
        if (round >= 0) samples.get(name)?.push(elapsed);
      }
    }
    const rows = [...samples].map(([name, values]) => ({ name, unit: "ms", ...distribution(values), samples: values }));
    const p50 = (name: string) => rows.find((row) => row.name === name)?.p50 ?? Number.NaN;
    return {
      rows,
      notes: [
        `on gvisor ${(p50("skerry on gvisor, SDK") / p50("bare runsc run")).toFixed(1)} times the bare runsc run (target: at most 4)`,
        `on runc ${(p50("skerry on runc, SDK") / p50("bare runc run")).toFixed(1)} times the bare runc run (target: at most 8)`,
      ],
    };
  },
};

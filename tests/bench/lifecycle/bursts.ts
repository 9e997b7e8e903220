import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { openBare } from "../bare.ts";
import type { Measured } from "../bench.ts";
import { createSandbox } from "../sdk.ts";
import { timed } from "../statistics.ts";

const AT_ONCE = 50;
const DEFAULT_POOL = 8;
const SUSTAINED_MS = 60_000;
const WORKERS = 4;

/** 50 creates at once without a pool, with the default pool and with a pool of 50; then as many creates and kills as possible in a minute. */
export async function bursts(): Promise<Measured[]> {
  const measured: Measured[] = [];
  {
    await using platform = await startPlatform({ runtime: "gvisor" });
    measured.push([`${AT_ONCE} creates at once, no pool`, "ms", await burst(platform)]);
  }
  for (const size of [DEFAULT_POOL, AT_ONCE]) {
    await using platform = await startPlatform({
      runtime: "gvisor",
      env: { SKERRY_POOL_SIZE: String(size), SKERRY_POOL_MEMORY_MB: "4096", SKERRY_LOG_LEVEL: "debug" },
    });
    await (await createSandbox(platform)).kill();
    await untilReady(platform, size);
    measured.push([`${AT_ONCE} creates at once, pool of ${size}`, "ms", await burst(platform)]);
  }
  {
    await using platform = await startPlatform({ runtime: "gvisor", env: { SKERRY_POOL_SIZE: "4" } });
    await using runsc = await openBare("runsc");
    measured.push(["creates per second, sustained", "/s", [await perSecond(async () => (await createSandbox(platform)).kill())]]);
    measured.push(["  bare runsc run in a loop", "/s", [await perSecond(() => runsc.run())]]);
  }
  return measured;
}

async function burst(platform: Platform): Promise<number[]> {
  const all = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const startedAt = performance.now();
      const sandbox = await createSandbox(platform);
      return { elapsed: performance.now() - startedAt, sandbox };
    }),
  );
  for (const { sandbox } of all) await sandbox.kill();
  return all.map(({ elapsed }) => elapsed);
}

async function perSecond(once: () => Promise<unknown>): Promise<number> {
  const until = performance.now() + SUSTAINED_MS;
  let done = 0;
  const elapsed = await timed(() =>
    Promise.all(
      Array.from({ length: WORKERS }, async () => {
        while (performance.now() < until) {
          await once();
          done += 1;
        }
      }),
    ),
  );
  return done / (elapsed / 1000);
}

async function untilReady(platform: Platform, count: number): Promise<void> {
  for (let waited = 0; waited < 120; waited++) {
    const filled = platform.logs().match(/"msg":"a sandbox is ready"/g)?.length ?? 0;
    if (filled >= count) return;
    await sleep(1_000);
  }
  throw new Error(`the pool did not reach ${count} sandboxes`);
}

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startPlatform } from "@skerry/testkit";
import type { Measured } from "../bench.ts";
import { availableMiB, diskMiB } from "../host-usage.ts";
import { createSandbox, echo } from "../sdk.ts";

const RUNNING = 100;
/** Until agents and platform have finished their garbage collection, and the pool is full. */
const SETTLE_MS = 14_000;

/** What an idle sandbox uses of the host, running and paused. */
export async function idleCosts(): Promise<Measured[]> {
  await using platform = await startPlatform({ runtime: "gvisor", env: { SKERRY_POOL_SIZE: "1" } });
  // The first sandboxes load shared files into the page cache, and the node makes the image of the template.
  for (let at = 0; at < 3; at++) await echo(await createSandbox(platform));
  await sleep(SETTLE_MS);
  const before = availableMiB();
  const sandboxes = [];
  for (let at = 0; at < RUNNING; at++) sandboxes.push(await createSandbox(platform));
  await sleep(SETTLE_MS);
  const running = (before - availableMiB()) / RUNNING;
  const images = join(platform.dataDir, "node/images");
  const diskBefore = diskMiB(images);
  for (const sandbox of sandboxes) await sandbox.pause();
  await sleep(SETTLE_MS);
  const paused = (before - availableMiB()) / RUNNING;
  return [
    [`host memory per idle sandbox, ${RUNNING} of them`, "MiB", [running]],
    [`host memory per paused sandbox, ${RUNNING} of them`, "MiB", [paused]],
    ["disk per paused sandbox", "MiB", [(diskMiB(images) - diskBefore) / RUNNING]],
  ];
}

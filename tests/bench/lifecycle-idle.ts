import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startPlatform } from "@skerry/testkit";
import type { Measured } from "./bench.ts";
import { diskMiB } from "./disk-usage.ts";
import { createSandbox, echo } from "./sdk.ts";

const RUNNING = 100;
const SETTLE_MS = 14_000;

/** What an idle sandbox takes of the host, running and paused. */
export async function idleCosts(): Promise<Measured[]> {
  await using platform = await startPlatform({ runtime: "gvisor", env: { SKERRY_POOL_SIZE: "1" } });
  // The first ones bring into the page cache what all of them share, and make the template's image.
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

function availableMiB(): number {
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
}

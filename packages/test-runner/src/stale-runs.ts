// Removes platforms of killed tests. Each data folder of a test names its owner (owner.json), so that folders of a concurrent run are
// left alone.

import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errnoOf } from "@skerry/base";
import { readLiveProcess } from "@skerry/setup/folder";
import { unmountBelow } from "./unmount-below.ts";

const END_LIMIT_MS = 60_000;

/** Removes what dead runs left below `runsDir`. Returns the names of their folders. */
export async function sweepStaleRuns(runsDir: string, cleanup: (dataDir: string) => Promise<unknown>): Promise<string[]> {
  const swept: string[] = [];
  for (const name of await readdir(runsDir).catch(() => [])) {
    const dir = join(runsDir, name);
    if (await isBeingMade(dir)) continue;
    if (await readLiveProcess(join(dir, "owner.json"))) continue;
    await endServers(dir);
    await cleanup(dir);
    await unmountBelow(dir);
    await rm(dir, { recursive: true, force: true });
    swept.push(name);
  }
  return swept;
}

/** Whether the folder is new and does not name its owner yet. */
async function isBeingMade(dir: string): Promise<boolean> {
  const named = await stat(join(dir, "owner.json")).catch(() => undefined);
  const { mtimeMs } = await stat(dir);
  return named === undefined && Date.now() - mtimeMs < 60_000;
}

/** Kills the platform processes of a data folder whose test has ended, and waits until they are gone. */
async function endServers(dataDir: string): Promise<void> {
  const deadline = performance.now() + END_LIMIT_MS;
  for (let pids = await findServers(dataDir); pids.length > 0; pids = await findServers(dataDir)) {
    if (performance.now() > deadline) throw new Error(`processes of ${dataDir} do not end after SIGKILL: ${pids.join(", ")}`);
    for (const pid of pids) killIfThere(pid);
    await sleep(20);
  }
}

/** Pids of processes with this data folder in their environment. A zombie has no environment and counts as gone. */
async function findServers(dataDir: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.split("\0").includes(`SKERRY_DATA=${dataDir}`)) found.push(Number(pid));
  }
  return found;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

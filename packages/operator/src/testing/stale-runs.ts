// Platforms of tests that were killed before they could clean up after themselves. Each test data folder names its
// owner (owner.json), so that those of a run that goes on beside this one are left alone.

import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { CleanupCounts } from "../cleanup-report.ts";
import { readLiveProcess } from "../daemon/process-record.ts";
import { unmountBelow } from "./unmount-below.ts";

/** Cleans up what dead runs left below `runsDir`, and returns their folders' names. */
export async function sweepStaleRuns(runsDir: string, cleanup: (dataDir: string) => Promise<CleanupCounts>): Promise<string[]> {
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

/** The folder comes a moment before its owner's name. */
async function isBeingMade(dir: string): Promise<boolean> {
  const named = await stat(join(dir, "owner.json")).catch(() => undefined);
  const { mtimeMs } = await stat(dir);
  return named === undefined && Date.now() - mtimeMs < 60_000;
}

/** Platform processes of this data folder whose test has gone: nobody else would ever end them. */
async function endServers(dataDir: string): Promise<void> {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.split("\0").includes(`SKERRY_DATA=${dataDir}`)) process.kill(Number(pid), "SIGKILL");
  }
}

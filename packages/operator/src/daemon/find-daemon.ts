import { readFile } from "node:fs/promises";
import type { DataFolder } from "@skerry/setup/folder";
import { describeProcess, OperatorError, type ProcessRecord, readLiveProcess } from "@skerry/setup/folder";
import { findLockHolder } from "./daemon-lock.privileged.ts";

/**
 * The process that runs the platform of this data folder, found by its lock. The pid file counts only for a process without a lock: one
 * that has just been started, or one of an older version. A user who cannot read the lock file has the pid file alone.
 */
export async function findDaemon(folder: DataFolder): Promise<ProcessRecord | undefined> {
  for (let pid = findLockHolder(folder.daemonLockFile); pid !== undefined; pid = findLockHolder(folder.daemonLockFile)) {
    if (pid === 0) throw outOfSight(folder);
    const found = await describeProcess(pid);
    // Checked again, so that the description is not of another process that got the pid meanwhile.
    if (found && findLockHolder(folder.daemonLockFile) === pid) return found;
  }
  const recorded = await readLiveProcess(folder.pidFile).catch(() => undefined);
  return recorded && (await isServe(recorded.pid)) ? recorded : undefined;
}

async function isServe(pid: number): Promise<boolean> {
  const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return commandLine.split("\0").includes("serve");
}

function outOfSight(folder: DataFolder): OperatorError {
  return new OperatorError(`the platform of ${folder.root} runs in a container, and its process is not visible from here`, {
    hints: ["Run this command in that container or on its host."],
  });
}

/** True when the platform API answers GET /health with 2xx. */
export async function isHealthy(apiUrl: string): Promise<boolean> {
  try {
    const response = await fetch(`${apiUrl}/health`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

import { setTimeout as sleep } from "node:timers/promises";
import type { DataFolder } from "@skerry/setup/folder";
import { isAlive, OperatorError, type ProcessRecord, removeProcessRecord } from "@skerry/setup/folder";
import { findDaemon } from "./find-daemon.ts";

/** Time that a process gets to stop before it is killed. It answers requests under way for up to 15 s. */
const STOP_LIMIT_MS = 30_000;
/** Processes of one folder: one per role at most. More can only come from a service manager that restarts them. */
const MOST_PROCESSES = 3;

/** Stops every `serve` process of this data folder, and kills those that do not stop in time. */
export async function stopDaemon(folder: DataFolder): Promise<"was not running" | "stopped" | "killed"> {
  let outcome: "was not running" | "stopped" | "killed" = "was not running";
  for (let count = 0; ; count++) {
    const running = await findDaemon(folder);
    if (!running) break;
    if (count === MOST_PROCESSES) throw startedAgain(folder, running);
    const how = await stopProcess(running);
    if (outcome !== "killed") outcome = how;
  }
  await removeProcessRecord(folder.pidFile);
  return outcome;
}

async function stopProcess(record: ProcessRecord): Promise<"stopped" | "killed"> {
  signalProcess(record, "SIGTERM");
  const deadline = performance.now() + STOP_LIMIT_MS;
  let outcome: "stopped" | "killed" = "stopped";
  while (await isAlive(record)) {
    if (performance.now() > deadline && outcome === "stopped") {
      outcome = "killed";
      signalProcess(record, "SIGKILL");
    }
    await sleep(20);
  }
  return outcome;
}

function signalProcess({ pid }: ProcessRecord, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // The process has just ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function startedAgain(folder: DataFolder, running: ProcessRecord): OperatorError {
  return new OperatorError(`something restarted the platform of ${folder.root} after it was stopped (process ${running.pid})`, {
    hints: ["Stop its service manager first, for example with systemctl stop, then run this command again."],
  });
}

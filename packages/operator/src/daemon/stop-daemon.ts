import { setTimeout as sleep } from "node:timers/promises";
import type { DataFolder } from "@skerry/setup/folder";
import { isAlive, OperatorError, type ProcessRecord, removeProcessRecord } from "@skerry/setup/folder";
import { findDaemon } from "./find-daemon.ts";

const STOP_LIMIT_MS = 30_000;
/** One process has all roles, or each role has one. More than these come only from something that starts them again. */
const MOST_PROCESSES = 3;

/** Ends every `serve` of this data folder, by force where it does not end by itself. */
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
    // It has just ended by itself.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function startedAgain(folder: DataFolder, running: ProcessRecord): OperatorError {
  return new OperatorError(`the platform of ${folder.root} was stopped, and started again by something else (process ${running.pid})`, {
    mend: ["Stop what starts it first, such as a systemd service (systemctl stop …), then run this again."],
  });
}

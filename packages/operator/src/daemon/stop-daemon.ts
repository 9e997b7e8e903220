import { setTimeout as sleep } from "node:timers/promises";
import type { DataFolder } from "../data-folder.ts";
import { isAlive, readLiveProcess, removeProcessRecord } from "./process-record.ts";

const STOP_LIMIT_MS = 30_000;

/** Ends the daemon of this data folder, by force when it does not end by itself. */
export async function stopDaemon(folder: DataFolder): Promise<"was not running" | "stopped" | "killed"> {
  const record = await readLiveProcess(folder.pidFile);
  if (!record) {
    await removeProcessRecord(folder.pidFile);
    return "was not running";
  }
  process.kill(record.pid, "SIGTERM");
  const deadline = performance.now() + STOP_LIMIT_MS;
  let outcome: "stopped" | "killed" = "stopped";
  while (await isAlive(record)) {
    if (performance.now() > deadline && outcome === "stopped") {
      outcome = "killed";
      process.kill(record.pid, "SIGKILL");
    }
    await sleep(20);
  }
  await removeProcessRecord(folder.pidFile);
  return outcome;
}

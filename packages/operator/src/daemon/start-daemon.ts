import { open, readFile, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isOutOfSpace, spawnCommand } from "@skerry/base";
import type { DataFolder } from "@skerry/setup/folder";
import {
  clientUrls,
  describeProcess,
  OperatorError,
  type PlatformSettings,
  serveEnvironment,
  writeProcessRecord,
} from "@skerry/setup/folder";
import { makeRoom } from "../make-room.ts";
import { formatLogLine } from "../terminal/log-line.ts";
import { isHealthy } from "./find-daemon.ts";
import { assertPortsFree } from "./free-ports.ts";
import { rotateLog } from "./log-rotation.ts";
import { stopDaemon } from "./stop-daemon.ts";

/** Time for the API to answer. Adopting many sandboxes takes most of it. */
const START_LIMIT_MS = 300_000;
/** Prefix of the message that a failed command prints (report-failure.ts). */
const MESSAGE_PREFIX = "skerry: ";

/**
 * Starts `skerry serve` in a session of its own, waits until the API answers and returns the pid. Throws if a port is in use.
 * Precondition: no daemon of this folder runs.
 */
export async function startDaemon(
  folder: DataFolder,
  options: { settings: PlatformSettings; mainScript: string; env: Readonly<Record<string, string | undefined>>; signal: AbortSignal },
): Promise<number> {
  const { settings, mainScript, env, signal } = options;
  // Otherwise another server that already answers on these ports would pass for the daemon.
  await assertPortsFree(settings);
  await makeRoom(folder);
  rotateLog(folder.logFile);
  const log = await open(folder.logFile, "a", 0o640);
  const logStart = (await stat(folder.logFile)).size;
  try {
    const child = spawnCommand(process.execPath, [mainScript, "serve"], {
      cwd: "/",
      env: serveEnvironment(folder, settings, env),
      stdout: log.fd,
      stderr: log.fd,
      detached: true,
    });
    const startError = new Promise<never>((_, reject) => child.once("error", reject));
    startError.catch(() => {});
    child.unref();
    const pid = child.pid;
    if (pid === undefined) return await startError;
    try {
      // On a full disk, the daemon is found by its lock alone.
      await writeProcessRecord(folder.pidFile, pid).catch(ignoreFullDisk);
      await untilHealthy({ pid, settings, signal });
    } catch (error) {
      await stopDaemon(folder);
      // stopDaemon does not find a process that has neither a record nor the lock yet.
      child.kill("SIGKILL");
      signal.throwIfAborted();
      throw await explain(error, folder, logStart);
    }
    return pid;
  } finally {
    await log.close();
  }
}

function ignoreFullDisk(error: unknown): void {
  if (!isOutOfSpace(error)) throw error;
}

async function untilHealthy({ pid, settings, signal }: { pid: number; settings: PlatformSettings; signal: AbortSignal }): Promise<void> {
  const { api } = clientUrls(settings);
  const deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    signal.throwIfAborted();
    // Checked after the health: another process may answer on the port.
    const healthy = await isHealthy(api);
    if (!(await describeProcess(pid))) throw new Error("the platform's process ended during the start");
    if (healthy) return;
    if (performance.now() > deadline) throw new Error(`the platform does not answer on ${api} after ${START_LIMIT_MS / 1000} s`);
    await sleep(50);
  }
}

async function explain(cause: unknown, folder: DataFolder, logStart: number): Promise<OperatorError> {
  const text = (await readFile(folder.logFile)).subarray(logStart).toString("utf8");
  const lines = text.trim().split("\n");
  const messages = lines.filter((line) => line.startsWith(MESSAGE_PREFIX));
  // The last message of the command, or else the last lines of the log.
  const last = messages.length > 0 ? messages.slice(-1) : lines.filter((line) => !/^\s+at |run \.\/skerry doctor\.$/.test(line)).slice(-8);
  return new OperatorError(cause instanceof Error ? cause.message : String(cause), {
    hints: [
      ...last.map((line) => `  ${formatLogLine(line)}`),
      `See ${folder.logFile} for the whole log, and run ./skerry doctor to check this host.`,
    ],
    cause,
  });
}

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

const START_LIMIT_MS = 60_000;
/** How the message of a command that failed begins (report-failure.ts). */
const SAID = "skerry: ";

/**
 * Starts `skerry serve` in a session of its own and returns its pid when the API answers. Throws before that when its ports are taken.
 * Preconditions: no daemon of this folder runs.
 */
export async function startDaemon(
  folder: DataFolder,
  options: { settings: PlatformSettings; mainScript: string; env: Readonly<Record<string, string | undefined>>; signal: AbortSignal },
): Promise<number> {
  const { settings, mainScript, env, signal } = options;
  // What answers on them afterwards is what is started here, not something that was there before.
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
      // On a full disk its lock alone says who it is.
      await writeProcessRecord(folder.pidFile, pid).catch(ignoreFullDisk);
      await untilHealthy({ pid, settings, signal });
    } catch (error) {
      await stopDaemon(folder);
      // Without a record, and before it had its lock, nobody could find it.
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
    // A healthy answer only counts while our process lives: somebody else may hold the port.
    const healthy = await isHealthy(api);
    if (!(await describeProcess(pid))) throw new Error("the platform's process ended while it started");
    if (healthy) return;
    if (performance.now() > deadline) throw new Error(`the platform did not answer on ${api} within ${START_LIMIT_MS / 1000} s`);
    await sleep(50);
  }
}

async function explain(cause: unknown, folder: DataFolder, logStart: number): Promise<OperatorError> {
  const text = (await readFile(folder.logFile)).subarray(logStart).toString("utf8");
  const lines = text.trim().split("\n");
  const said = lines.filter((line) => line.startsWith(SAID));
  // What it said to whoever started it. Where it could not even do that, the end of its log.
  const last = said.length > 0 ? said.slice(-1) : lines.filter((line) => !/^\s+at |\.\/skerry doctor$/.test(line)).slice(-8);
  return new OperatorError(cause instanceof Error ? cause.message : String(cause), {
    mend: [
      ...last.map((line) => `  ${formatLogLine(line)}`),
      `The whole log: ${folder.logFile}    What this machine lacks: ./skerry doctor`,
    ],
    cause,
  });
}

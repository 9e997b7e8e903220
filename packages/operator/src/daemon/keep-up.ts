import { setTimeout as sleep } from "node:timers/promises";
import { isOutOfSpace } from "@skerry/base";
import type { DataFolder } from "@skerry/setup/folder";
import { OperatorError, type ProcessRecord, readJsonFile, readLiveProcess, takeSetupLock, writeJsonFile } from "@skerry/setup/folder";
import { findDaemon } from "./find-daemon.ts";

export interface KeepUpTiming {
  readonly pollMs: number;
  /** Before the first new start; doubled each time it falls again soon. */
  readonly firstDelayMs: number;
  /** A daemon that lived shorter fell at once. */
  readonly quickFallMs: number;
  readonly quickFalls: number;
}

export interface KeepUpOptions {
  readonly folder: DataFolder;
  /** Starts the daemon; answers when it is healthy. */
  readonly start: () => Promise<unknown>;
  readonly say: (text: string) => void;
  /** Somebody wants it to end. */
  readonly signal: AbortSignal;
  readonly timing?: KeepUpTiming;
}

const TIMING: KeepUpTiming = { pollMs: 500, firstDelayMs: 500, quickFallMs: 60_000, quickFalls: 5 };

/**
 * Starts the daemon again whenever it falls. Never ends a sandbox: they do without a daemon, and the next one adopts them.
 * Answers `interrupted` when `signal` fires, and `ended` when `./skerry down` in another terminal ended the platform.
 */
export async function keepUp(options: KeepUpOptions): Promise<"interrupted" | "ended"> {
  const { folder, signal, say, timing = TIMING } = options;
  let falls = 0;
  for (;;) {
    const since = performance.now();
    while (!signal.aborted && (await findDaemon(folder))) {
      await restoreRecord(folder);
      await pause(timing.pollMs, signal);
    }
    if (signal.aborted) return "interrupted";
    falls = performance.now() - since < timing.quickFallMs ? falls + 1 : 1;
    const state = await underLock(folder, async () => ((await findDaemon(folder)) ? "up" : "fell"));
    if (state === "ended") return "ended";
    if (state === "up") continue;
    if (falls > timing.quickFalls) throw fellTooOften(folder, falls);
    const delayMs = timing.firstDelayMs * 2 ** (falls - 1);
    say(`The platform ended by itself. Its sandboxes go on; starting it again in ${delayMs / 1000} s.`);
    await pause(delayMs, signal);
    if (signal.aborted) return "interrupted";
    if ((await underLock(folder, (record) => startAgain(options, record))) === "ended") return "ended";
  }
}

async function startAgain({ folder, start, say, signal }: KeepUpOptions, fallen: ProcessRecord): Promise<void> {
  if (await findDaemon(folder)) return;
  try {
    await start();
    say("The platform is up again.");
  } catch (error) {
    if (signal.aborted) return;
    say(`It could not be started again: ${error instanceof Error ? error.message : String(error)}`);
    // Where there is no record, somebody has ended the platform on purpose.
    await writeJsonFile(folder.pidFile, fallen);
  }
}

/** Writes the record of a running daemon again where it was lost: without one, its next fall would look like the work of `./skerry down`. */
async function restoreRecord(folder: DataFolder): Promise<void> {
  const isRecorded = async () => (await readLiveProcess(folder.pidFile).catch(() => undefined)) !== undefined;
  if (await isRecorded()) return;
  const lock = await takeSetupLock(folder.lockFile, { wait: true }).catch(ignoreMissing);
  if (!lock) return;
  await using _lock = lock;
  const running = await findDaemon(folder);
  // On a full disk it is written when there is room.
  if (running && !(await isRecorded())) await writeJsonFile(folder.pidFile, running).catch(ignoreFullDisk);
}

/** `ended` without doing the work, when the record or the whole folder is gone: `./skerry down` removes them. */
async function underLock<T>(folder: DataFolder, work: (record: ProcessRecord) => Promise<T>): Promise<T | "ended"> {
  const lock = await takeSetupLock(folder.lockFile, { wait: true }).catch(ignoreMissing);
  if (!lock) return "ended";
  await using _lock = lock;
  const record = await readJsonFile<ProcessRecord>(folder.pidFile);
  return record === undefined ? "ended" : await work(record);
}

function ignoreFullDisk(error: unknown): void {
  if (!isOutOfSpace(error)) throw error;
}

/** The whole data folder is gone. */
function ignoreMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

function fellTooOften(folder: DataFolder, falls: number): OperatorError {
  return new OperatorError(`the platform ended by itself ${falls} times in a row; it is not started again`, {
    mend: [
      "Its sandboxes were left as they are, and go on running.",
      `Why it ended: ${folder.logFile}`,
      "To go on with them: ./skerry up    To end them all: ./skerry down",
    ],
  });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

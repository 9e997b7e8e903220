import { setTimeout as sleep } from "node:timers/promises";
import { isOutOfSpace } from "@skerry/base";
import type { DataFolder } from "@skerry/setup/folder";
import { OperatorError, type ProcessRecord, readJsonFile, readLiveProcess, waitForSetupLock, writeJsonFile } from "@skerry/setup/folder";
import { findDaemon } from "./find-daemon.ts";

export interface KeepUpTiming {
  readonly pollMs: number;
  /** Delay before the first restart. Doubles with each crash that follows quickly. */
  readonly firstDelayMs: number;
  /** A daemon that ran for less time than this crashed quickly. */
  readonly quickFallMs: number;
  /** Quick crashes in a row after which it is not restarted any more. */
  readonly quickFalls: number;
}

export interface KeepUpOptions {
  readonly folder: DataFolder;
  /** Starts the daemon. Resolves when it is healthy. */
  readonly start: () => Promise<unknown>;
  readonly say: (text: string) => void;
  /** Fires when the user wants the platform to stop. */
  readonly signal: AbortSignal;
  readonly timing?: KeepUpTiming;
}

const TIMING: KeepUpTiming = { pollMs: 500, firstDelayMs: 500, quickFallMs: 60_000, quickFalls: 5 };

/**
 * Restarts the daemon whenever it crashes. Never kills a sandbox: they run without a daemon, and the next one adopts them.
 * Returns `interrupted` when `signal` fires, and `ended` when `./skerry down` in another terminal stopped the platform.
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
    say(`The platform crashed. Sandboxes keep running; restarting it in ${delayMs / 1000} s.`);
    await pause(delayMs, signal);
    if (signal.aborted) return "interrupted";
    if ((await underLock(folder, (record) => startAgain(options, record))) === "ended") return "ended";
  }
}

async function startAgain({ folder, start, say, signal }: KeepUpOptions, fallen: ProcessRecord): Promise<void> {
  if (await findDaemon(folder)) return;
  try {
    await start();
    say("The platform is running again.");
  } catch (error) {
    if (signal.aborted) return;
    say(`The platform could not be restarted: ${error instanceof Error ? error.message : String(error)}`);
    // A missing record would mean that the user stopped the platform.
    await writeJsonFile(folder.pidFile, fallen);
  }
}

/** Writes a lost record of a running daemon again. Without a record, the next crash would look like `./skerry down`. */
async function restoreRecord(folder: DataFolder): Promise<void> {
  const isRecorded = async () => (await readLiveProcess(folder.pidFile).catch(() => undefined)) !== undefined;
  if (await isRecorded()) return;
  const lock = await waitForSetupLock(folder);
  if (!lock) return;
  await using _lock = lock;
  const running = await findDaemon(folder);
  // On a full disk, the next round tries again.
  if (running && !(await isRecorded())) await writeJsonFile(folder.pidFile, running).catch(ignoreFullDisk);
}

/** Runs `work` under the set-up lock. Returns `ended` if the record or the whole folder is gone: `./skerry down` removes them. */
async function underLock<T>(folder: DataFolder, work: (record: ProcessRecord) => Promise<T>): Promise<T | "ended"> {
  const lock = await waitForSetupLock(folder);
  if (!lock) return "ended";
  await using _lock = lock;
  const record = await readJsonFile<ProcessRecord>(folder.pidFile);
  return record === undefined ? "ended" : await work(record);
}

function ignoreFullDisk(error: unknown): void {
  if (!isOutOfSpace(error)) throw error;
}

function fellTooOften(folder: DataFolder, falls: number): OperatorError {
  return new OperatorError(`the platform crashed ${falls} times in a row and is not restarted`, {
    hints: [
      "Its sandboxes keep running.",
      `See ${folder.logFile} for the cause.`,
      "To start it again, run ./skerry up. To kill the sandboxes, run ./skerry down.",
    ],
  });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

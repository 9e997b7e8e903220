// The set-up lock is an flock: it ends with its process and needs no disk space. The file names the holder for messages. The file is
// never removed, because another process may be waiting for its lock.

import { closeSync, fstatSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../operator-error.ts";
import { describeProcess, readLiveProcess } from "./process-record.ts";

const LOOK_MS = 50;

/** Allows one set-up or shutdown at a time per data folder. Waits for another holder with `wait`, and throws OperatorError without. */
export async function takeSetupLock(path: string, options: { wait?: boolean } = {}): Promise<AsyncDisposable> {
  // Loaded on demand: most commands need no system calls.
  const { lockFile } = await import("@skerry/base/linux");
  for (;;) {
    const fd = openSync(path, "a+", 0o644);
    const isOurs = lockFile(fd);
    if (isOurs && isStillThere(fd, path)) return await heldLock(fd);
    closeSync(fd);
    // The data folder was deleted meanwhile, and perhaps created again.
    if (isOurs) continue;
    if (options.wait) {
      await sleep(LOOK_MS);
      continue;
    }
    const holder = await readLiveProcess(path).catch(() => undefined);
    throw new OperatorError(`another ./skerry command${holder ? ` (process ${holder.pid})` : ""} is setting up or stopping this platform`, {
      hints: ["Wait for it to finish, then try again."],
    });
  }
}

async function heldLock(fd: number): Promise<AsyncDisposable> {
  sign(fd, JSON.stringify(await describeProcess(process.pid)));
  return {
    [Symbol.asyncDispose]: async () => {
      sign(fd, "");
      closeSync(fd);
    },
  };
}

function isStillThere(fd: number, path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino;
}

/** Names the holder. On a full disk the lock works without. */
function sign(fd: number, text: string): void {
  try {
    ftruncateSync(fd);
    if (text !== "") writeSync(fd, text);
  } catch {
    // The disk is full.
  }
}

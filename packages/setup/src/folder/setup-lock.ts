// The lock is the kernel's (flock): it goes with its process, however that ends, and taking it needs no room on the disk. The file only
// carries it, and says whose it is; it stays, because whoever removes it would take it from under the next one.

import { closeSync, fstatSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../operator-error.ts";
import { describeProcess, readLiveProcess } from "./process-record.ts";

const LOOK_MS = 50;

/** One set-up or shutdown at a time per data folder. With `wait` another one is waited for, else it is an error. */
export async function takeSetupLock(path: string, options: { wait?: boolean } = {}): Promise<AsyncDisposable> {
  // Loaded when it is needed: most commands of ./skerry do without.
  const { lockFile } = await import("@skerry/base/linux");
  for (;;) {
    const fd = openSync(path, "a+", 0o644);
    const isOurs = lockFile(fd);
    if (isOurs && isStillThere(fd, path)) return await heldLock(fd);
    closeSync(fd);
    // Its whole folder was removed meanwhile, and perhaps made again.
    if (isOurs) continue;
    if (options.wait) {
      await sleep(LOOK_MS);
      continue;
    }
    const holder = await readLiveProcess(path).catch(() => undefined);
    throw new OperatorError(`another ./skerry${holder ? ` (process ${holder.pid})` : ""} is setting up or stopping this data folder`, {
      mend: ["Wait until it has ended, then try again."],
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

/** For people: where there is no room for it, the lock holds all the same. */
function sign(fd: number, text: string): void {
  try {
    ftruncateSync(fd);
    if (text !== "") writeSync(fd, text);
  } catch {
    // The disk is full.
  }
}

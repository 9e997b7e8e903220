// The set-up lock is an flock: it ends with its process and needs no disk space. The file names the holder for messages. The file is
// never removed, because another process may be waiting for its lock.

import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errnoOf } from "@skerry/base";
import { OperatorError } from "../operator-error.ts";
import type { DataFolder } from "./data-folder.ts";
import { describeProcess, readLiveProcess } from "./process-record.ts";

const LOOK_MS = 50;

/** Allows one set-up or shutdown at a time per data folder. Waits for another holder with `wait`, and throws OperatorError without. */
export async function takeSetupLock(path: string, options: { wait?: boolean } = {}): Promise<AsyncDisposable> {
  return await takeLock(() => openSync(path, "a+", 0o644), path, options);
}

/** Waits for the lock of a platform's data folder. Undefined once the folder was deleted, in which this creates nothing. */
export async function waitForSetupLock({ lockFile, settingsFile }: DataFolder): Promise<AsyncDisposable | undefined> {
  const open = () => {
    try {
      return openSync(lockFile, "r+");
    } catch (error) {
      // Somebody may have removed the lock alone.
      if (errnoOf(error) !== "ENOENT" || !existsSync(settingsFile)) throw error;
      return openSync(lockFile, "a+", 0o644);
    }
  };
  try {
    return await takeLock(open, lockFile, { wait: true });
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Deletes a data folder, whose lock the caller has. What shows that it is one goes last, so that an interrupted deletion can be repeated; and
 * before the lock, so that `waitForSetupLock` of another process finds the folder deleted.
 */
export async function deleteDataFolder({ root, settingsFile, lockFile }: DataFolder): Promise<void> {
  const last = [settingsFile, lockFile];
  for (const path of (await readdir(root)).map((name) => join(root, name)))
    if (!last.includes(path)) await rm(path, { recursive: true, force: true });
  for (const path of last) await rm(path, { force: true });
  await rmdir(root);
}

async function takeLock(open: () => number, path: string, options: { wait?: boolean }): Promise<AsyncDisposable> {
  // Loaded on demand: most commands need no system calls.
  const { lockFile } = await import("@skerry/base/linux");
  for (;;) {
    const fd = open();
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

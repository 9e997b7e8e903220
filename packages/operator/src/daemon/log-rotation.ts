// The log is copied and truncated, never renamed: the daemon keeps writing through the descriptor that it inherited, and readers keep
// the same file. Copying and truncating are synchronous, so this process writes nothing in between.

import { chmodSync, copyFileSync, fstatSync, readFileSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { isOutOfSpace } from "@skerry/base";

/** Size above which the log is rotated. */
const LOG_LIMIT_BYTES = 16 * 1024 * 1024;
const LOOK_EVERY_MS = 60_000;
const STDOUT = 1;
const STDERR = 2;

/**
 * Keeps one older log (`<path>.1`). The previous one is deleted first, which frees space on a full disk. If the copy still does not fit,
 * the log is not rotated this time.
 */
export function rotateLog(path: string, limitBytes = LOG_LIMIT_BYTES): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= limitBytes) return;
  const older = `${path}.1`;
  rmSync(older, { force: true });
  try {
    copyFileSync(path, older);
  } catch (error) {
    rmSync(older, { force: true });
    if (isOutOfSpace(error)) return;
    throw error;
  }
  chmodSync(older, 0o640);
  truncateSync(path);
}

/** Rotates the log regularly while standard output of this process is that file, and not a terminal or a service manager's pipe. */
export function rotateOwnLog(path: string, options: { limitBytes?: number; everyMs?: number } = {}): Disposable {
  const timer = setInterval(() => {
    try {
      if (isOwnLog(path)) rotateLog(path, options.limitBytes);
    } catch (error) {
      say(`the log could not be rotated: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  }, options.everyMs ?? LOOK_EVERY_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Standard error is usually the same log, and may fail as well. */
function say(text: string): void {
  try {
    writeSync(STDERR, text);
  } catch {
    // There is nowhere left to report it.
  }
}

/** Whether standard output is that file, opened for appending. Without O_APPEND, the next write would leave a hole. */
function isOwnLog(path: string): boolean {
  const [output, log] = [fstatSync(STDOUT), statSync(path, { throwIfNoEntry: false })];
  if (!log?.isFile() || output.ino !== log.ino || output.dev !== log.dev) return false;
  const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${STDOUT}`, "utf8"))?.[1] ?? "0";
  return (Number.parseInt(flags, 8) & 0o2000) !== 0;
}

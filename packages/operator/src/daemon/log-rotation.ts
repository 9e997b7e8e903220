// The log is copied aside and emptied, never renamed: the daemon writes to it by the descriptor that it was started with,
// and whoever follows it keeps the same file. All at once, so that nothing can be written in between.

import { chmodSync, copyFileSync, fstatSync, readFileSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { isOutOfSpace } from "@skerry/base";

const LOG_LIMIT_BYTES = 16 * 1024 * 1024;
const LOOK_EVERY_MS = 60_000;
const STDOUT = 1;
const STDERR = 2;

/**
 * One older log is kept beside the current one. The one before goes first: on a full disk it makes the room. Where that is not enough
 * the log stays as it is, until the next time.
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

/** Keeps this process's own log small, where it is that file: a service manager's or a person's terminal is none of ours. */
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

/** Standard error is that log, which may not take it. */
function say(text: string): void {
  try {
    writeSync(STDERR, text);
  } catch {
    // Then nobody hears it.
  }
}

/** True when standard output goes there, and always to its end: else what comes next would leave a hole. */
function isOwnLog(path: string): boolean {
  const [output, log] = [fstatSync(STDOUT), statSync(path, { throwIfNoEntry: false })];
  if (!log?.isFile() || output.ino !== log.ino || output.dev !== log.dev) return false;
  const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${STDOUT}`, "utf8"))?.[1] ?? "0";
  return (Number.parseInt(flags, 8) & 0o2000) !== 0;
}

// The log is copied aside and emptied, never renamed: the daemon writes to it by the descriptor that it was started with,
// and whoever follows it keeps the same file. All at once, so that nothing can be written in between.

import { chmodSync, copyFileSync, fstatSync, readFileSync, statSync, truncateSync } from "node:fs";

const LOG_LIMIT_BYTES = 16 * 1024 * 1024;
const LOOK_EVERY_MS = 60_000;
const STDOUT = 1;

/** One older log is kept beside the current one. */
export function rotateLog(path: string, limitBytes = LOG_LIMIT_BYTES): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= limitBytes) return;
  copyFileSync(path, `${path}.1`);
  chmodSync(`${path}.1`, 0o640);
  truncateSync(path);
}

/** Keeps this process's own log small, where it is that file: a service manager's or a person's terminal is none of ours. */
export function rotateOwnLog(path: string, options: { limitBytes?: number; everyMs?: number } = {}): Disposable {
  const timer = setInterval(() => {
    try {
      if (isOwnLog(path)) rotateLog(path, options.limitBytes);
    } catch (error) {
      process.stderr.write(`the log could not be rotated: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  }, options.everyMs ?? LOOK_EVERY_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** True when standard output goes there, and always to its end: else what comes next would leave a hole. */
function isOwnLog(path: string): boolean {
  const [output, log] = [fstatSync(STDOUT), statSync(path, { throwIfNoEntry: false })];
  if (!log?.isFile() || output.ino !== log.ino || output.dev !== log.dev) return false;
  const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${STDOUT}`, "utf8"))?.[1] ?? "0";
  return (Number.parseInt(flags, 8) & 0o2000) !== 0;
}

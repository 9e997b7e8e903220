// Writes log lines. Logging must not disturb the operation that logs, so nothing here throws or waits for a full disk or a slow reader.
// Lines that cannot be written now are kept for later, up to a limit; further lines are dropped and counted.

import { constants, fstatSync, openSync, writeSync } from "node:fs";

const KEPT_BYTES = 256 * 1024;
const RETRY_MS = 200;
/** How long the process waits at its exit for a slow reader, and the interval of its attempts. */
const LAST_CHANCE_MS = 500;
const LAST_CHANCE_STEP_MS = 10;

export interface LogOutputOptions {
  readonly fd: number;
  /** Called with the number of dropped lines as soon as lines can be written again. A line that it logs is written at once. */
  readonly onDropped: (lines: number) => void;
  /** Limit of the lines that are kept for later. Default 256 KiB. */
  readonly keptBytes?: number;
}

export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #fd: number;
  readonly #keptBytes: number;
  /** A part of the first line may have been written. */
  readonly #lines: Buffer[] = [];
  #bytes = 0;
  #dropped = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#fd = withoutWaiting(options.fd);
    this.#keptBytes = options.keptBytes ?? KEPT_BYTES;
  }

  /** Never throws. `line` ends with a line break. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#retry && this.#bytes + bytes.length > this.#keptBytes) {
      this.#dropped += 1;
      return;
    }
    this.#lines.push(bytes);
    this.#bytes += bytes.length;
    if (!this.#retry) this.#flush();
  }

  #flush(): void {
    if (!this.#writeAll()) {
      if (!this.#retry) process.once("exit", this.#atExit);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#flush(), RETRY_MS).unref();
      return;
    }
    clearTimeout(this.#retry);
    this.#retry = undefined;
    process.off("exit", this.#atExit);
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.#options.onDropped(dropped);
  }

  #writeAll(): boolean {
    for (let first = this.#lines[0]; first !== undefined; first = this.#lines[0]) {
      const written = tryToWrite(this.#fd, first);
      this.#bytes -= written;
      if (written < first.length) {
        this.#lines[0] = first.subarray(written);
        if (written === 0) return false;
      } else this.#lines.shift();
    }
    return true;
  }

  /** Gives a slow reader the chance to read the rest. */
  readonly #atExit = (): void => {
    const clock = new Int32Array(new SharedArrayBuffer(4));
    for (let waited = 0; waited < LAST_CHANCE_MS && !this.#writeAll(); waited += LAST_CHANCE_STEP_MS) {
      Atomics.wait(clock, 0, 0, LAST_CHANCE_STEP_MS);
    }
  };
}

/** Returns the number of bytes written; 0 when nothing can be written now. */
function tryToWrite(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes);
  } catch {
    // The disk is full (ENOSPC) or broken (EIO), or nobody reads (EAGAIN, EPIPE). There is no better place to report it.
    return 0;
  }
}

/** Reopens a pipe as non-blocking, because a full pipe would stop the whole process. Other users of the pipe keep their mode. */
function withoutWaiting(fd: number): number {
  try {
    if (fstatSync(fd).isFIFO()) return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // The descriptor is used as it is.
  }
  return fd;
}

// Where log lines go. Whoever logs is in the middle of something that matters more, so nothing here throws, and nothing waits for a disk
// with room or for somebody who reads: what can't be written now is kept for later, up to a limit, and what is over that is counted.

import { constants, fstatSync, openSync, writeSync } from "node:fs";

const KEPT_BYTES = 256 * 1024;
const RETRY_MS = 200;
const LAST_CHANCE_MS = 500;
const LAST_CHANCE_STEP_MS = 10;

export interface LogOutputOptions {
  readonly fd: number;
  /** Hears, when lines can be written again, how many were not. What it logs then is written at once. */
  readonly onDropped: (lines: number) => void;
  /** How much is kept of what can't be written. Default 256 KiB. */
  readonly keptBytes?: number;
}

export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #fd: number;
  readonly #keptBytes: number;
  /** The first may have been written in part. */
  readonly #lines: Buffer[] = [];
  #bytes = 0;
  #dropped = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#fd = withoutWaiting(options.fd);
    this.#keptBytes = options.keptBytes ?? KEPT_BYTES;
  }

  /** Never throws. `line` has its line break. */
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

  /** A reader that is only slow gets the rest. */
  readonly #atExit = (): void => {
    const clock = new Int32Array(new SharedArrayBuffer(4));
    for (let waited = 0; waited < LAST_CHANCE_MS && !this.#writeAll(); waited += LAST_CHANCE_STEP_MS) {
      Atomics.wait(clock, 0, 0, LAST_CHANCE_STEP_MS);
    }
  };
}

/** 0: not now. */
function tryToWrite(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes);
  } catch {
    // No room (ENOSPC), nobody who reads (EAGAIN, EPIPE), a disk that is broken (EIO): there is no better place to say so.
    return 0;
  }
}

/** A pipe that nobody reads would stop this whole process. Its other end, and whoever else writes to it, keep the mode that they chose. */
function withoutWaiting(fd: number): number {
  try {
    if (fstatSync(fd).isFIFO()) return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // As it is, then.
  }
  return fd;
}

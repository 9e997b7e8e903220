// Pseudo-terminals without a native module: the work of forkpty, in steps that fit posix_spawn.

import { constants, openSync } from "node:fs";
import { LibcError, libc } from "./libc.ts";

const TIOCSPTLCK = 0x40045431;
const TIOCGPTN = 0x80045430;
const TIOCSWINSZ = 0x5414;

export interface PtySize {
  readonly cols: number;
  readonly rows: number;
}

export interface Pty {
  readonly master: number;
  readonly terminal: string;
}

/** Call it as the user who is to own the terminal: the kernel makes the user that opens the master its owner. */
export function openPty(size: PtySize): Pty {
  const master = openSync("/dev/ptmx", constants.O_RDWR | constants.O_NOCTTY);
  const number = new Int32Array(1);
  control(master, TIOCSPTLCK, new Uint8Array(4));
  control(master, TIOCGPTN, new Uint8Array(number.buffer));
  resizePty(master, size);
  return { master, terminal: `/dev/pts/${number[0]}` };
}

export function resizePty(master: number, size: PtySize): void {
  const winsize = Uint16Array.of(size.rows, size.cols, 0, 0);
  control(master, TIOCSWINSZ, new Uint8Array(winsize.buffer));
}

function control(fd: number, request: number, argument: Uint8Array): void {
  if (libc().ioctl(fd, request, argument) !== 0) throw new LibcError("ioctl on a terminal");
}

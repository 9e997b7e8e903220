// One inotify descriptor, read by the event loop and, when somebody cannot wait for that, at once.
//
// Node.js offers no way to wait for a foreign descriptor. But it reads any pipe that it is given by number, and only
// starts to poll it in the next round of the loop: so it gets a real pipe, whose number then becomes the inotify
// descriptor's. The bytes arrive in the same thread as those of `read`, hence never out of order.

import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { type InotifyEvent, parseInotifyEvents } from "./inotify-event.ts";
import { LibcError, libc } from "./libc.ts";

const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const READ_BYTES = 64 * 1024;
/** Of one `read`: more than the kernel queues by default (16,384 short events), and an end when the guest never pauses. */
const MAX_READS = 32;

export class Inotify {
  readonly #fd: number;
  readonly #socket: Socket;
  #isClosed = false;
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BYTES);

  /** `onEvents` gets what the event loop reads. */
  constructor(onEvents: (events: InotifyEvent[]) => void) {
    const inotify = libc().inotifyInit1(O_NONBLOCK | O_CLOEXEC);
    if (inotify < 0) throw new LibcError("inotify_init1");
    const pipe = new Int32Array(2);
    if (libc().pipe2(new Uint8Array(pipe.buffer), O_NONBLOCK | O_CLOEXEC) !== 0) {
      const error = new LibcError("pipe2");
      closeSync(inotify);
      throw error;
    }
    const [fd = -1, writeEnd = -1] = pipe;
    this.#fd = fd;
    const callback = (length: number, bytes: Uint8Array) => {
      onEvents(parseInotifyEvents(Buffer.from(bytes.buffer, bytes.byteOffset, length)));
      return true;
    };
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    this.#socket = new Socket({ fd, readable: true, writable: false, onread: { buffer, callback } });
    this.#socket.unref();
    libc().dup3(inotify, fd, O_CLOEXEC);
    closeSync(inotify);
    closeSync(writeEnd);
  }

  /** The path has one character per byte. The same directory always has the same number. */
  add(path: string, mask: number): number {
    if (this.#isClosed) throw new LibcError("inotify_add_watch", constants.errno.EBADF);
    const wd = libc().inotifyAddWatch(this.#fd, Buffer.from(`${path}\0`, "latin1"), mask);
    if (wd < 0) throw new LibcError("inotify_add_watch");
    return wd;
  }

  /** A number that the kernel has dropped already is fine. */
  remove(wd: number): void {
    if (!this.#isClosed) libc().inotifyRmWatch(this.#fd, wd);
  }

  /** What is queued at this moment; `isDrained` when nothing is left behind. */
  read(): { events: InotifyEvent[]; isDrained: boolean } {
    const events: InotifyEvent[] = [];
    for (let count = 0; count < MAX_READS && !this.#isClosed; count++) {
      const length = libc().read(this.#fd, this.#buffer, READ_BYTES);
      if (length <= 0) return { events, isDrained: true };
      for (const event of parseInotifyEvents(this.#buffer.subarray(0, length))) events.push(event);
    }
    return { events, isDrained: this.#isClosed };
  }

  /** Gives back every watch. The number of the descriptor may be somebody else's from here on. */
  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }
}

// One inotify descriptor. The event loop reads it, and code that cannot wait for the event loop reads it directly.
//
// Node.js cannot wait for an arbitrary descriptor. But it reads any pipe that it gets by number, and polls it only from the next round
// of the loop on. So it gets a real pipe, and then the inotify descriptor takes over the pipe's number. Both kinds of reading happen
// in one thread, so events never arrive out of order.

import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { type InotifyEvent, parseInotifyEvents } from "./inotify-event.ts";
import { LibcError, libc } from "./libc.ts";

const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
/** Size of one read: room for about 2,000 events with short names. */
const READ_BYTES = 64 * 1024;
/**
 * Limit on the reads of one `read` call, so that it ends even when the guest never pauses. It covers more than the kernel queues by
 * default (16,384 short events).
 */
const MAX_READS = 32;

export class Inotify {
  readonly #fd: number;
  readonly #socket: Socket;
  #isClosed = false;
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BYTES);

  /** `onEvents` receives the events that the event loop reads. */
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

  /** The path has one character per byte. Returns the watch descriptor, which is always the same for the same directory. */
  add(path: string, mask: number): number {
    if (this.#isClosed) throw new LibcError("inotify_add_watch", constants.errno.EBADF);
    const wd = libc().inotifyAddWatch(this.#fd, Buffer.from(`${path}\0`, "latin1"), mask);
    if (wd < 0) throw new LibcError("inotify_add_watch");
    return wd;
  }

  /** Has no effect when the kernel has already dropped the watch. */
  remove(wd: number): void {
    if (!this.#isClosed) libc().inotifyRmWatch(this.#fd, wd);
  }

  /** Reads the queued events. `isDrained` is false when the queue may hold more. */
  read(): { events: InotifyEvent[]; isDrained: boolean } {
    const events: InotifyEvent[] = [];
    for (let count = 0; count < MAX_READS && !this.#isClosed; count++) {
      const length = libc().read(this.#fd, this.#buffer, READ_BYTES);
      if (length <= 0) return { events, isDrained: true };
      for (const event of parseInotifyEvents(this.#buffer.subarray(0, length))) events.push(event);
    }
    return { events, isDrained: this.#isClosed };
  }

  /** Removes all watches. From here on the descriptor's number may be reused. */
  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }
}

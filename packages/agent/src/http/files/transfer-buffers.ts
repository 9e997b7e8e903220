/** Size of a buffer. Each read or write of a file passes through another thread, which in gVisor costs as much as a few hundred KiB. */
const LARGE_BYTES = 1024 * 1024;
/** Number of transfers with large buffers. Further ones get small buffers: many slow clients must not use up the sandbox's memory. */
const MAX_LARGE = 8;
const SMALL_BYTES = 128 * 1024;

let underWay = 0;

/**
 * The two buffers of a transfer: one is filled while the content of the other is written. They are reused, because new memory for each
 * piece costs more than the copying, above all in gVisor, which maps memory page by page.
 */
export class TransferBuffers implements Disposable {
  filling: Buffer;
  #other: Buffer;

  /** `length` is the size of the transfer, if known. */
  constructor(length = Number.POSITIVE_INFINITY) {
    const size = Math.min(underWay < MAX_LARGE ? LARGE_BYTES : SMALL_BYTES, length);
    this.filling = Buffer.allocUnsafeSlow(size);
    this.#other = length > size ? Buffer.allocUnsafeSlow(size) : this.filling;
    underWay += 1;
  }

  /** Preconditions: the content of the other buffer is written. */
  swap(): void {
    [this.filling, this.#other] = [this.#other, this.filling];
  }

  [Symbol.dispose](): void {
    underWay -= 1;
  }
}

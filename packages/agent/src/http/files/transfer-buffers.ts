/** Each read and each write of a file takes its way through another thread, which in gVisor costs as much as a few hundred KiB. */
const LARGE_BYTES = 1024 * 1024;
/** Beyond this many at once each gets less: those that wait for slow clients must not add up to the sandbox's memory. */
const LARGE_ONES = 8;
const SMALL_BYTES = 128 * 1024;

let underWay = 0;

/**
 * What a transfer moves its bytes with: one buffer is filled while the other is on its way, over and over. Fresh memory for each piece
 * costs more than copying does, above all in gVisor, which brings in its pages one by one.
 */
export class TransferBuffers implements Disposable {
  filling: Buffer;
  #other: Buffer;

  /** For not more than so many bytes. */
  constructor(length = Number.POSITIVE_INFINITY) {
    const size = Math.min(underWay < LARGE_ONES ? LARGE_BYTES : SMALL_BYTES, length);
    this.filling = Buffer.allocUnsafeSlow(size);
    this.#other = length > size ? Buffer.allocUnsafeSlow(size) : this.filling;
    underWay += 1;
  }

  /** Preconditions: the other one has arrived. */
  swap(): void {
    [this.filling, this.#other] = [this.#other, this.filling];
  }

  [Symbol.dispose](): void {
    underWay -= 1;
  }
}

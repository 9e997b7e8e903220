import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";

/** Any number of random bytes at little cost: repeats the same MiB. */
export class ByteSource {
  readonly #block = randomBytes(1024 * 1024);

  /** Writes `bytes` bytes as fast as the reader takes them, then ends the stream. */
  pour(stream: Writable, bytes: number): void {
    let left = bytes;
    const write = () => {
      while (left > 0) {
        const chunk = left < this.#block.length ? this.#block.subarray(0, left) : this.#block;
        left -= chunk.length;
        if (!stream.write(chunk)) {
          stream.once("drain", write);
          return;
        }
      }
      stream.end();
    };
    write();
  }
}

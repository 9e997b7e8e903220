import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";

/** Random bytes in any amount, at next to no cost: the same MiB again and again. */
export class ByteSource {
  readonly #block = randomBytes(1024 * 1024);

  /** Writes so many as fast as the other side takes them, and ends the stream. */
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

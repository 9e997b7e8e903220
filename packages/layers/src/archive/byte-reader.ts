import { PlatformError } from "@skerry/base/error";

/** Reads a stream in pieces of the sizes that its reader wants. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Exactly `size` bytes. Throws PlatformError("archive_invalid") when the stream ends before. */
  async read(size: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let wanted = size; wanted > 0; ) {
      const piece = await this.readSome(wanted);
      pieces.push(piece);
      wanted -= piece.length;
    }
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  }

  /** Between one and `most` bytes: what is there. */
  async readSome(most: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) throw new PlatformError("archive_invalid", "the archive ends too early");
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const piece = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  /** Reads what is left and returns how many bytes that was, so that a source that checks its end does so. */
  async drain(): Promise<number> {
    let bytes = this.#rest.length;
    this.#rest = Buffer.alloc(0);
    for (let next = await this.#source.next(); !next.done; next = await this.#source.next()) bytes += next.value.length;
    return bytes;
  }

  /** Tells the source that nobody reads on. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

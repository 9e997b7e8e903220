import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { ArchiveError } from "../errors.ts";

const GZIP_MAGIC = [0x1f, 0x8b];
const INFLATED_PIECE_BYTES = 256 * 1024;

/** The bytes of an archive, which is read in pieces of the wanted sizes. It reads no further ahead than its source's own buffer. */
export class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);
  #taken = 0;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** How many bytes were read so far. */
  get taken(): number {
    return this.#taken;
  }

  /** Whether nothing is left. */
  async isAtEnd(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#pieces.next();
      if (done) return true;
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    return false;
  }

  /** Exactly `size` bytes. Throws ArchiveError when fewer are left. The result may share memory with the source. */
  async read(size: number): Promise<Buffer> {
    const buffered = this.take(size);
    if (buffered) return buffered;
    const pieces: Buffer[] = [];
    for (let wanted = size; wanted > 0; ) {
      const piece = await this.readSome(wanted);
      pieces.push(piece);
      wanted -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  /** Exactly `size` bytes if they are already here. */
  take(size: number): Buffer | undefined {
    if (this.#rest.length < size) return undefined;
    const piece = this.#rest.subarray(0, size);
    this.#rest = this.#rest.subarray(size);
    this.#taken += size;
    return piece;
  }

  /** Between one and `most` bytes: what is here, or else the next piece. */
  async readSome(most: number): Promise<Buffer> {
    if (await this.isAtEnd()) throw new ArchiveError("the archive ends too early");
    return this.take(Math.min(most, this.#rest.length)) as Buffer;
  }

  async skip(size: number): Promise<void> {
    for (let left = size; left > 0; ) left -= (await this.readSome(left)).length;
  }

  /** Reads to the end, so that the checksum of a compressed archive is verified. */
  async drain(): Promise<void> {
    while (!(await this.isAtEnd())) this.#rest = Buffer.alloc(0);
  }

  /** Frees what the pieces are made with. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}

/** The bytes of a tar archive that is plain or compressed with gzip: its first two bytes tell. */
export async function* plainBytes(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  let first: Uint8Array = new Uint8Array();
  while (first.length < GZIP_MAGIC.length) {
    const { done, value } = await pieces.next();
    if (done) break;
    first = first.length === 0 ? value : Buffer.concat([first, value]);
  }
  const all = startingWith(first, pieces);
  if (GZIP_MAGIC.every((byte, index) => first[index] === byte)) yield* gunzip(all);
  else yield* all;
}

async function* startingWith(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (first.length > 0) yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

async function* gunzip(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(bytes, { objectMode: false });
  const inflated = createGunzip({ chunkSize: INFLATED_PIECE_BYTES });
  // Without this, a broken connection would leave the reader waiting.
  source.on("error", (error) => inflated.destroy(error));
  source.pipe(inflated);
  try {
    yield* inflated as AsyncIterable<Buffer>;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (code === "Z_BUF_ERROR") throw new ArchiveError("the archive ends too early", { cause: error });
    if (code.startsWith("Z_")) throw new ArchiveError("the archive is damaged: it cannot be decompressed", { cause: error });
    throw error;
  } finally {
    source.destroy();
  }
}

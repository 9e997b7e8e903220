// Reads a multipart body as a stream of parts and never holds a whole part in memory.
//
// Libraries for Node.js treat a part without a file name as a text field, strip folders from names, or decode names as Latin-1.
// Uploads need the part unchanged.

import { parseMediaType } from "./media-type.ts";

/** Limit on the headers of one part, which are held in memory. */
const MAX_HEADER_BYTES = 64 * 1024;
const CRLF = Buffer.from("\r\n");
const HEADER_END = Buffer.from("\r\n\r\n");

/** The framing between the parts is malformed. */
export class FramingError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "FramingError";
  }
}

/** The body ends inside a part's content. */
export class TruncatedPartError extends Error {
  constructor() {
    super("unexpected EOF");
    this.name = "TruncatedPartError";
  }
}

export interface Part {
  /** Parameters of the part's Content-Disposition if that is `form-data`; otherwise empty. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Must be read before the next part is requested. Unread content is skipped. */
  readonly content: AsyncIterable<Buffer>;
}

export async function* readParts(source: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<Part> {
  const input = new Input(source);
  try {
    yield* partsOf(input, boundary);
  } finally {
    await input.close();
  }
}

async function* partsOf(input: Input, boundary: string): AsyncGenerator<Part> {
  // The first boundary has no line break before it, unless there is a preamble.
  input.unread(CRLF);
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  for await (const _ of until(input, delimiter, () => new FramingError("multipart: NextPart: EOF"))) {
    // Skip the preamble, which is meant for readers without multipart support.
  }
  while (await startsPart(input)) {
    const parameters = await readHeaders(input);
    // An empty part may have no line break of its own before the boundary.
    input.unread(CRLF);
    const content = contentOf(input, delimiter);
    yield { parameters, content };
    for await (const _ of content) {
      // Skip what the caller has not read.
    }
  }
}

/** After a boundary: the end of its line, or `--` after the last part. */
async function startsPart(input: Input): Promise<boolean> {
  if (!(await input.fill(2))) throw new FramingError("multipart: NextPart: EOF");
  if (input.buffer.subarray(0, 2).toString("latin1") === "--") return false;
  const line = await input.takeThrough(CRLF, MAX_HEADER_BYTES);
  if (line === undefined) throw new FramingError("multipart: NextPart: EOF");
  return true;
}

async function readHeaders(input: Input): Promise<ReadonlyMap<string, string>> {
  input.unread(CRLF);
  const block = await input.takeThrough(HEADER_END, MAX_HEADER_BYTES);
  if (block === undefined) throw new FramingError("multipart: the headers of a part do not end");
  const lines = block
    .toString("utf8")
    .replace(/\r\n[ \t]+/g, " ")
    .split("\r\n");
  const disposition = lines.map((line) => /^content-disposition\s*:(.*)$/i.exec(line)?.[1]).find((value) => value !== undefined);
  const parsed = parseMediaType(disposition ?? "");
  return parsed?.type === "form-data" ? parsed.parameters : new Map();
}

// The line break that the caller put back belongs to the headers, not to the content.
async function* contentOf(input: Input, delimiter: Buffer): AsyncGenerator<Buffer> {
  let skip = CRLF.length;
  for await (const piece of until(input, delimiter, () => new TruncatedPartError())) {
    const kept = piece.subarray(Math.min(skip, piece.length));
    skip -= piece.length - kept.length;
    if (kept.length > 0) yield kept;
  }
}

/** Yields everything before the next delimiter, and consumes the delimiter. */
async function* until(input: Input, delimiter: Buffer, onEnd: () => Error): AsyncGenerator<Buffer> {
  for (;;) {
    const found = await findDelimiter(input, delimiter);
    if (found !== -1) {
      const last = input.take(found);
      input.take(delimiter.length);
      if (last.length > 0) yield last;
      return;
    }
    const safe = input.buffer.length - delimiter.length;
    if (safe > 0) yield input.take(safe);
    if (!(await input.fill(input.buffer.length + 1))) throw onEnd();
  }
}

// A longer word that begins like the boundary is content, so the byte after the match is checked.
async function findDelimiter(input: Input, delimiter: Buffer): Promise<number> {
  for (let from = 0; ; ) {
    const found = input.buffer.indexOf(delimiter, from);
    if (found === -1) return -1;
    await input.fill(found + delimiter.length + 1);
    const next = input.buffer[found + delimiter.length];
    if (next === undefined || next === 0x0d || next === 0x2d || next === 0x20 || next === 0x09) return found;
    from = found + 1;
  }
}

/** A byte stream with lookahead. */
class Input {
  buffer: Buffer = Buffer.alloc(0);
  readonly #chunks: AsyncIterator<Buffer>;

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** Stops reading and leaves the rest of the source to its owner. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** Reads until `length` bytes are buffered. Returns false when the stream ends before that. */
  async fill(length: number): Promise<boolean> {
    while (this.buffer.length < length) {
      const { done, value } = await this.#chunks.next();
      if (done) return false;
      this.buffer = this.buffer.length === 0 ? value : Buffer.concat([this.buffer, value]);
    }
    return true;
  }

  take(length: number): Buffer {
    const taken = this.buffer.subarray(0, length);
    this.buffer = this.buffer.subarray(length);
    return taken;
  }

  /** Takes the bytes before the mark and consumes the mark. Undefined when the mark does not come within the limit. */
  async takeThrough(mark: Buffer, limit: number): Promise<Buffer | undefined> {
    for (;;) {
      const found = this.buffer.indexOf(mark);
      if (found !== -1) {
        const taken = this.take(found);
        this.take(mark.length);
        return taken;
      }
      if (this.buffer.length > limit || !(await this.fill(this.buffer.length + 1))) return undefined;
    }
  }

  unread(bytes: Buffer): void {
    this.buffer = Buffer.concat([bytes, this.buffer]);
  }
}

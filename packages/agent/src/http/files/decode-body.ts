import type { IncomingMessage } from "node:http";
import { createGunzip } from "node:zlib";
import { HttpError } from "../exchange.ts";

/**
 * Removes the content encoding from the body of an upload. `gzip` covers the whole body, including the multipart framing. A body that
 * is not gzip at all is rejected here, before any file is touched.
 */
export async function decodeBody(req: IncomingMessage): Promise<AsyncIterable<Buffer>> {
  const header = req.headers["content-encoding"]?.toString() ?? "";
  const encoding = (header.split(";")[0] ?? "").trim().toLowerCase();
  // A route that stops reading still sends a response, so the connection must stay open.
  if (encoding === "" || encoding === "identity") return { [Symbol.asyncIterator]: () => req.iterator({ destroyOnReturn: false }) };
  if (encoding !== "gzip") {
    throw new HttpError(400, `error decompressing request body: unsupported Content-Encoding: ${header}, supported: [gzip]`);
  }
  const pieces = gunzip(req);
  return resumed(await pieces.next(), pieces);
}

async function* resumed(first: IteratorResult<Buffer>, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

/** Size of a gzip header. A shorter stream is not gzip. */
const HEADER_BYTES = 10;

async function* gunzip(req: IncomingMessage): AsyncGenerator<Buffer> {
  const stream = createGunzip();
  // Without this, a broken connection would leave the reader waiting.
  req.on("error", (error) => stream.destroy(error));
  req.pipe(stream);
  try {
    yield* stream;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "Z_DATA_ERROR") throw new HttpError(400, "error decompressing request body: not gzip data");
    if (code === "Z_BUF_ERROR" && stream.bytesWritten < HEADER_BYTES) {
      throw new HttpError(400, "error decompressing request body: unexpected EOF");
    }
    if (code === "Z_BUF_ERROR") throw new HttpError(500, "error writing file: unexpected EOF");
    throw error;
  }
}

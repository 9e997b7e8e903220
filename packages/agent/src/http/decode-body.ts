import type { IncomingMessage } from "node:http";
import { createGunzip } from "node:zlib";
import { HttpError } from "./exchange.ts";

/** The body of an upload without its content encoding; `gzip` covers the whole of it, multipart framing included. */
export function decodeBody(req: IncomingMessage): AsyncIterable<Buffer> {
  const header = req.headers["content-encoding"]?.toString() ?? "";
  const encoding = (header.split(";")[0] ?? "").trim().toLowerCase();
  // Whoever stops reading goes on to answer: the connection has to outlive that.
  if (encoding === "" || encoding === "identity") return { [Symbol.asyncIterator]: () => req.iterator({ destroyOnReturn: false }) };
  if (encoding !== "gzip") {
    throw new HttpError(400, `error decompressing request body: unsupported Content-Encoding: ${header}, supported: [gzip]`);
  }
  return gunzip(req);
}

async function* gunzip(req: IncomingMessage): AsyncGenerator<Buffer> {
  const stream = createGunzip();
  // A connection that breaks must not leave the reader waiting.
  req.on("error", (error) => stream.destroy(error));
  req.pipe(stream);
  try {
    yield* stream;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "Z_DATA_ERROR") throw new HttpError(400, "error decompressing request body: not gzip data");
    if (code === "Z_BUF_ERROR") throw new HttpError(500, "error writing file: unexpected EOF");
    throw error;
  }
}

// Sends a file uncompressed, whole or in ranges, with HTTP's conditional requests.

import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { kernelRandomBytes } from "../../kernel-random.ts";
import { HttpError } from "../exchange.ts";
import { checkConditions, rangesApply } from "./conditions.ts";
import { SNIFF_BYTES, sniffType, typeByExtension } from "./content-type.ts";
import type { DownloadSource } from "./download.ts";
import { type ByteRange, parseRanges } from "./ranges.ts";
import { sendRange } from "./send-range.ts";

export async function sendPlain(source: DownloadSource, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { stats } = source;
  res.setHeader("Last-Modified", stats.mtime.toUTCString());
  switch (checkConditions(req.headers, stats.mtimeMs)) {
    case "not-modified":
      res.writeHead(304).end();
      return;
    case "failed":
      res.writeHead(412, { "Content-Length": "0" }).end();
      return;
    case "proceed":
  }
  // Files without a meaningful size (procfs, devices, FIFOs) are read to their end.
  if (!stats.isFile() || stats.size === 0) return await sendToEnd(source, res);
  const type = await contentType(source);
  const wanted = parseRanges(rangesApply(req.headers, stats.mtimeMs) ? req.headers.range : undefined, stats.size);
  switch (wanted.kind) {
    case "malformed":
      throw new HttpError(416, "invalid range", "text");
    case "unsatisfiable":
      res.setHeader("Content-Range", `bytes */${stats.size}`);
      throw new HttpError(416, "invalid range: failed to overlap", "text");
    case "whole":
      res.writeHead(200, { "Accept-Ranges": "bytes", "Content-Type": type, "Content-Length": stats.size });
      await sendRange(source.file, { start: 0, end: stats.size }, res);
      res.end();
      return;
    case "parts":
      return await sendParts(source, { ranges: wanted.ranges, type }, res);
  }
}

async function sendParts(
  source: DownloadSource,
  parts: { ranges: readonly ByteRange[]; type: string },
  res: ServerResponse,
): Promise<void> {
  const { size } = source.stats;
  const contentRange = (range: ByteRange) => `bytes ${range.start}-${range.end - 1}/${size}`;
  const [only] = parts.ranges;
  if (parts.ranges.length === 1 && only) {
    const length = only.end - only.start;
    res.writeHead(206, {
      "Accept-Ranges": "bytes",
      "Content-Type": parts.type,
      "Content-Range": contentRange(only),
      "Content-Length": length,
    });
    await sendRange(source.file, only, res);
    res.end();
    return;
  }
  const boundary = kernelRandomBytes(30).toString("hex");
  const heads = parts.ranges.map(
    (range, index) =>
      `${index === 0 ? "" : "\r\n"}--${boundary}\r\nContent-Range: ${contentRange(range)}\r\nContent-Type: ${parts.type}\r\n\r\n`,
  );
  const tail = `\r\n--${boundary}--\r\n`;
  const length = parts.ranges.reduce((sum, range, index) => sum + (heads[index]?.length ?? 0) + range.end - range.start, tail.length);
  res.writeHead(206, { "Accept-Ranges": "bytes", "Content-Type": `multipart/byteranges; boundary=${boundary}`, "Content-Length": length });
  for (const [index, range] of parts.ranges.entries()) {
    res.write(heads[index]);
    await sendRange(source.file, range, res);
  }
  res.end(tail);
}

async function sendToEnd(source: DownloadSource, res: ServerResponse): Promise<void> {
  const stream = source.file.createReadStream({ autoClose: false });
  const chunks = stream[Symbol.asyncIterator]();
  const first = await chunks.next();
  const type = typeByExtension(source.name) ?? sniffType(first.done ? new Uint8Array() : (first.value as Buffer));
  if (first.done) {
    res.writeHead(200, { "Accept-Ranges": "bytes", "Content-Type": type, "Content-Length": "0" }).end();
    return;
  }
  res.writeHead(200, { "Content-Type": type });
  await pipeline(async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  }, res);
}

async function contentType(source: DownloadSource): Promise<string> {
  const known = typeByExtension(source.name);
  if (known !== undefined) return known;
  const head = Buffer.alloc(Math.min(SNIFF_BYTES, source.stats.size));
  const { bytesRead } = await source.file.read(head, 0, head.length, 0);
  return sniffType(head.subarray(0, bytesRead));
}

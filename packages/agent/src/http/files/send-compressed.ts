import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { typeByExtension } from "./content-type.ts";
import type { DownloadSource } from "./download.ts";

/** The whole file to its end, compressed; no length, no ranges. */
export async function sendCompressed(source: DownloadSource, res: ServerResponse): Promise<void> {
  res.setHeader("Content-Encoding", "gzip");
  res.setHeader("Content-Type", typeByExtension(source.name) ?? "application/octet-stream");
  res.writeHead(200);
  await pipeline(source.file.createReadStream({ autoClose: false }), createGzip(), res);
}

import { constants, type Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { asError, errnoOf } from "@skerry/base";
import { type Exchange, HttpError, single } from "../exchange.ts";
import { type Encoding, NotAcceptableError, negotiateEncoding } from "./accept-encoding.ts";
import { inlineDisposition } from "./content-disposition.ts";
import { typeByExtension } from "./content-type.ts";
import { assertFileAccess, filePath, fileUser } from "./file-request.ts";
import { sendPlain } from "./send-plain.ts";

export async function download(exchange: Exchange): Promise<void> {
  const { query, state, req, res } = exchange;
  assertFileAccess(exchange, "read");
  const user = fileUser(state, single(query, "username"));
  const path = filePath(state, single(query, "path") ?? "", user);
  const { size } = await readableStats(path);
  const encoding = chooseEncoding(exchange, size);
  await using file = await openFile(path);
  const stats = await file.stat();
  res.setHeader("Vary", "Accept-Encoding");
  res.setHeader("Content-Disposition", inlineDisposition(posix.basename(path)));
  const source = { file, stats, name: posix.basename(path) };
  await (encoding === "gzip" ? sendCompressed(source, res) : sendPlain(source, req, res));
}

export interface DownloadSource {
  readonly file: FileHandle;
  readonly stats: Stats;
  readonly name: string;
}

async function readableStats(path: string): Promise<Stats> {
  let stats: Stats;
  try {
    stats = await stat(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new HttpError(404, `path '${path}' does not exist`);
    throw new HttpError(500, `error checking if path exists '${path}': ${asError(error).message}`);
  }
  if (stats.isDirectory()) throw new HttpError(400, `path '${path}' is a directory`);
  return stats;
}

/**
 * From this size on, a client that accepts both encodings gets the file uncompressed. Every HTTP client offers gzip by default, and
 * compressing a large file takes ten times as long as sending it to most of them.
 */
const LARGE_BYTES = 1024 * 1024;

function chooseEncoding({ req, res }: Exchange, size: number): Encoding {
  const { headers } = req;
  const conditions = ["range", "if-modified-since", "if-none-match", "if-range"];
  const isConditional = conditions.some((name) => headers[name] !== undefined && headers[name] !== "");
  try {
    return negotiateEncoding(headers["accept-encoding"]?.toString(), { isConditional, prefersIdentity: size >= LARGE_BYTES });
  } catch (error) {
    if (!(error instanceof NotAcceptableError)) throw error;
    if (isConditional) res.setHeader("Vary", "Accept-Encoding");
    throw new HttpError(406, error.message);
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    // O_NONBLOCK: opening a FIFO without a writer would block a thread. A few of those would block all threads that read files.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new HttpError(500, `error opening file '${path}': ${asError(error).message}`);
  }
}

/** Sends the whole file compressed, without a length and without ranges. */
async function sendCompressed(source: DownloadSource, res: ServerResponse): Promise<void> {
  res.setHeader("Content-Encoding", "gzip");
  res.setHeader("Content-Type", typeByExtension(source.name) ?? "application/octet-stream");
  res.writeHead(200);
  await pipeline(source.file.createReadStream({ autoClose: false }), createGzip(), res);
}

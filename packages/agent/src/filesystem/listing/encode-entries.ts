// Encodes a ListDirResponse in pieces. The library that encodes all other messages needs the whole message. With 100,000 entries it
// would block the agent for seconds, and hold the entries in memory several times.

import { create, toBinary } from "@bufbuild/protobuf";
import { FileType, ListDirResponseSchema } from "@skerry/wire/filesystem";
import type { Entry } from "../entry.ts";

/** Minimum size of a piece, except for the last one. */
const PIECE_BYTES = 64 * 1024;

export type Encoding = "json" | "binary";

export async function* encodeEntries(batches: AsyncIterable<readonly Entry[]>, encoding: Encoding): AsyncGenerator<Uint8Array> {
  const isJson = encoding === "json";
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  const take = (piece: Uint8Array) => {
    pieces.push(piece);
    bytes += piece.length;
  };
  let isFirst = true;
  for await (const entries of batches) {
    if (isJson) take(Buffer.from((isFirst ? '{"entries":[' : ",") + entries.map(jsonOf).join(",")));
    else take(toBinary(ListDirResponseSchema, create(ListDirResponseSchema, { entries: [...entries] })));
    isFirst = false;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(pieces);
    pieces = [];
    bytes = 0;
  }
  if (isJson) take(Buffer.from(isFirst ? "{}" : "]}"));
  if (bytes > 0) yield Buffer.concat(pieces);
}

const TYPE_NAMES: Readonly<Partial<Record<FileType, string>>> = {
  [FileType.FILE]: "FILE_TYPE_FILE",
  [FileType.DIRECTORY]: "FILE_TYPE_DIRECTORY",
};

/** Protobuf's JSON mapping: fields in their order, default values omitted, 64-bit numbers as strings. */
export function jsonOf(entry: Entry): string {
  const type = TYPE_NAMES[entry.type];
  let json = `{"name":${JSON.stringify(entry.name)}`;
  if (type !== undefined) json += `,"type":"${type}"`;
  json += `,"path":${JSON.stringify(entry.path)}`;
  if (entry.size !== 0n) json += `,"size":"${entry.size}"`;
  if (entry.mode !== 0) json += `,"mode":${entry.mode}`;
  json += `,"permissions":"${entry.permissions}"`;
  if (entry.owner !== "") json += `,"owner":${JSON.stringify(entry.owner)}`;
  if (entry.group !== "") json += `,"group":${JSON.stringify(entry.group)}`;
  json += `,"modifiedTime":"${timeText(entry.modifiedTime)}"`;
  if (entry.symlinkTarget !== undefined) json += `,"symlinkTarget":${JSON.stringify(entry.symlinkTarget)}`;
  if (Object.keys(entry.metadata).length > 0) json += `,"metadata":${JSON.stringify(entry.metadata)}`;
  return entry.isSymlink ? `${json},"isSymlink":true}` : `${json}}`;
}

/** Cache: many files of a directory have the same second. */
let lastSecond = { seconds: 0n, text: "1970-01-01T00:00:00" };

/** RFC 3339 with 0, 3, 6 or 9 decimal places. */
function timeText({ seconds, nanos }: Entry["modifiedTime"]): string {
  if (seconds !== lastSecond.seconds) {
    lastSecond = { seconds, text: new Date(Number(seconds) * 1000).toISOString().slice(0, -".000Z".length) };
  }
  if (nanos === 0) return `${lastSecond.text}Z`;
  const digits = String(nanos).padStart(9, "0");
  const shortened = digits.endsWith("000000") ? digits.slice(0, 3) : digits.endsWith("000") ? digits.slice(0, 6) : digits;
  return `${lastSecond.text}.${shortened}Z`;
}

// Headers of tar archives as image builders write them: POSIX ustar and pax, and GNU's long names. Names are bytes.

import { PlatformError } from "@skerry/base/error";
import { BLOCK_BYTES, decodePax, decodeTime, type PaxRecords, XATTR_PREFIX } from "../archive/pax.ts";

export interface TarHeader {
  /** The type flag: a character. */
  readonly type: string;
  readonly path: Buffer;
  readonly target: Buffer;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly mtimeNs: bigint;
  /** Names and values. */
  readonly xattrs: readonly (readonly [Buffer, Buffer])[];
}

/** What precedes the header of an entry and replaces its fields. */
export interface TarExtension {
  readonly pax?: PaxRecords;
  readonly path?: Buffer;
  readonly target?: Buffer;
}

const MAX_TIME_NS = 0xffffffffn * 1_000_000_000n;
const MAX_ID = 0xfffffffe;

/** Undefined for an empty block, which ends the archive. Throws PlatformError("archive_invalid"). */
export function parseTarHeader(block: Buffer, { pax = new Map(), path, target }: TarExtension): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  assertChecksum(block);
  const type = String.fromCharCode(block[156] ?? 0);
  const isPosix = block.subarray(257, 263).equals(Buffer.from("ustar\0"));
  const prefix = isPosix ? textAt(block, 345, 155) : Buffer.alloc(0);
  const name = textAt(block, 0, 100);
  const short = prefix.length > 0 ? Buffer.concat([prefix, Buffer.from("/"), name]) : name;
  const time = pax.get("mtime");
  return {
    type: type === "\0" || type === "7" ? "0" : type,
    path: pax.get("path") ?? path ?? short,
    target: pax.get("linkpath") ?? target ?? textAt(block, 157, 100),
    mode: numberAt(block, 100, 8) & 0o7777,
    uid: idOf(paxNumber(pax, "uid") ?? numberAt(block, 108, 8)),
    gid: idOf(paxNumber(pax, "gid") ?? numberAt(block, 116, 8)),
    size: paxNumber(pax, "size") ?? numberAt(block, 124, 12),
    mtimeNs: timeOf(time ? decodeTime(time) : BigInt(numberAt(block, 136, 12)) * 1_000_000_000n),
    xattrs: [...pax].flatMap(([key, value]) =>
      key.startsWith(XATTR_PREFIX) ? [[Buffer.from(key.slice(XATTR_PREFIX.length), "latin1"), value] as const] : [],
    ),
  };
}

/** Records of the extended header. Sparse files in GNU's formats for them are refused: image builders write none. */
export function parsePax(bytes: Buffer): PaxRecords {
  const records = decodePax(bytes);
  if ([...records.keys()].some((key) => key.startsWith("GNU.sparse."))) throw invalid("it has a sparse file");
  return records;
}

function assertChecksum(block: Buffer): void {
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0);
  if (sum !== numberAt(block, 148, 8)) throw invalid("the checksum of a header is wrong");
}

function textAt(block: Buffer, start: number, length: number): Buffer {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return Buffer.from(end < 0 ? field : field.subarray(0, end));
}

/** Octal digits, or GNU's binary form for large and negative numbers. */
function numberAt(block: Buffer, start: number, length: number): number {
  const field = block.subarray(start, start + length);
  const first = field[0] ?? 0;
  if (first === 0x80 || first === 0xff) {
    let value = first === 0xff ? -1n : 0n;
    for (const byte of field.subarray(1)) value = (value << 8n) | BigInt(byte);
    return safe(Number(value));
  }
  const text = field.toString("latin1").replace(/\0.*$/s, "").trim();
  if (text === "") return 0;
  if (!/^[0-7]{1,12}$/.test(text)) throw invalid("a number in a header is damaged");
  return Number.parseInt(text, 8);
}

function paxNumber(pax: PaxRecords, name: string): number | undefined {
  const text = pax.get(name)?.toString("latin1");
  if (text === undefined) return undefined;
  if (!/^\d{1,16}$/.test(text)) throw invalid(`a number in it is damaged (${name})`);
  return safe(Number(text));
}

function safe(value: number): number {
  if (!Number.isSafeInteger(value)) throw invalid("a number in it is too large");
  return value;
}

/** File systems refuse times of other centuries, or change them. */
function timeOf(ns: bigint): bigint {
  return ns < 0n ? 0n : ns > MAX_TIME_NS ? MAX_TIME_NS : ns;
}

function idOf(id: number): number {
  if (id < 0 || id > MAX_ID) throw invalid("an owner in it is no user");
  return id;
}

function invalid(why: string): PlatformError {
  return new PlatformError("archive_invalid", `a layer cannot be unpacked: ${why}`);
}

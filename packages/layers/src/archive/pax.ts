// The extended headers of tar archives (POSIX pax): `<length> <key>=<value>\n`, where keys and values are bytes. They carry what the
// fixed header has no room for. The keys are those that GNU tar and libarchive use.

import { PlatformError } from "@skerry/base/error";

export const BLOCK_BYTES = 512;
/** The largest extended header that is read: the attributes of one file, which the kernel limits to 64 KiB per list, and its path. */
export const MAX_PAX_BYTES = 16 * 1024 * 1024;
export const XATTR_PREFIX = "SCHILY.xattr.";

export type PaxRecords = ReadonlyMap<string, Buffer>;

/** Keys are latin1 text, so that an attribute's name can have any bytes. */
export function encodePax(records: PaxRecords): Buffer {
  return Buffer.concat([...records].map(([key, value]) => encodeRecord(Buffer.from(`${key}=`, "latin1"), value)));
}

function encodeRecord(key: Buffer, value: Buffer): Buffer {
  // The length counts its own digits, the space and the line feed.
  const rest = key.length + value.length + 2;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.concat([Buffer.from(`${length} `), key, value, Buffer.from("\n")]);
}

export function decodePax(bytes: Buffer): PaxRecords {
  const records = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const digits = bytes.toString("latin1", at, space);
    const length = Number(digits);
    const equals = bytes.indexOf(0x3d, space);
    const isRecord = space > at && /^\d{1,9}$/.test(digits) && equals > space && equals < at + length && bytes[at + length - 1] === 0x0a;
    if (!isRecord) throw new PlatformError("archive_invalid", "an extended header of the archive is damaged");
    records.set(bytes.toString("latin1", space + 1, equals), bytes.subarray(equals + 1, at + length - 1));
    at += length;
  }
  return records;
}

/** Nanoseconds as pax writes times: seconds with a fraction. */
export function encodeTime(ns: bigint): Buffer {
  const [sign, size] = ns < 0n ? ["-", -ns] : ["", ns];
  return Buffer.from(`${sign}${size / 1_000_000_000n}.${String(size % 1_000_000_000n).padStart(9, "0")}`);
}

export function decodeTime(value: Buffer): bigint {
  const [, sign, seconds = "", fraction = ""] = /^(-?)(\d{1,18})(?:\.(\d{1,9}))?$/.exec(value.toString("latin1")) ?? [];
  if (seconds === "") throw new PlatformError("archive_invalid", "a time in the archive is damaged");
  const size = BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -size : size;
}

/** How many bytes follow content of this size up to the next block. */
export function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

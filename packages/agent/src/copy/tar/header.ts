// The 512-byte header of a tar entry: POSIX ustar, the older format without a magic, and the variations of GNU tar.

import type { BytePath } from "../byte-path.ts";
import { ArchiveError } from "../errors.ts";

export const BLOCK_BYTES = 512;

export interface Header {
  readonly type: string;
  readonly name: BytePath;
  readonly linkName: BytePath;
  readonly mode: number;
  readonly size: number;
  /** Seconds since the epoch. */
  readonly mtime: number;
}

/** Offset and length of each field. */
const NAME = [0, 100] as const;
const MODE = [100, 8] as const;
const SIZE = [124, 12] as const;
const MTIME = [136, 12] as const;
const CHECKSUM = [148, 8] as const;
const TYPE_AT = 156;
const LINK_NAME = [157, 100] as const;
const MAGIC = [257, 6] as const;
const PREFIX = [345, 155] as const;

const SPACE = 0x20;
const MODE_BITS = 0o7777;

/** Throws ArchiveError for a block that is no header. Preconditions: the block is not empty. */
export function parseHeader(block: Buffer): Header {
  if (!isChecksumRight(block)) throw new ArchiveError("the archive is damaged: not a tar archive, or a damaged header");
  const name = textOf(block, NAME);
  // GNU tar has other fields in the place of the prefix, and marks them with a magic of its own.
  const prefix = textOf(block, MAGIC) === "ustar" ? textOf(block, PREFIX) : "";
  return {
    type: String.fromCharCode(block[TYPE_AT] ?? 0),
    name: prefix === "" ? name : `${prefix}/${name}`,
    linkName: textOf(block, LINK_NAME),
    mode: Number(numberOf(block, MODE)) & MODE_BITS,
    size: sizeOf(numberOf(block, SIZE)),
    mtime: numberOf(block, MTIME),
  };
}

export function isEmptyBlock(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** How many bytes follow content of this size up to the next block. */
export function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

export function sizeOf(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new ArchiveError("the archive is damaged: an impossible size");
  return value;
}

/** A number in octal digits, or in base 256 when its first bit is set. An empty field is 0. */
export function numberOf(block: Buffer, [at, length]: readonly [number, number]): number {
  const first = block[at] ?? 0;
  if (first & 0x80) return base256(block.subarray(at, at + length));
  const digits = block
    .toString("latin1", at, at + length)
    .replace(/\0[\s\S]*$/, "")
    .trim();
  if (!/^[0-7]*$/.test(digits)) throw new ArchiveError("the archive is damaged: a number in a header");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function base256(bytes: Buffer): number {
  const isNegative = ((bytes[0] ?? 0) & 0x40) !== 0;
  let value = isNegative ? -1n : 0n;
  for (const [index, byte] of bytes.entries()) value = (value << 8n) | BigInt(index === 0 && !isNegative ? byte & 0x7f : byte);
  return Number(value);
}

/** The sum of all bytes, with spaces in the place of the sum. Some old programs summed signed bytes. */
function isChecksumRight(block: Buffer): boolean {
  const [at, length] = CHECKSUM;
  let unsigned = 0;
  let signed = 0;
  for (let index = 0; index < BLOCK_BYTES; index++) {
    const byte = index >= at && index < at + length ? SPACE : (block[index] ?? 0);
    unsigned += byte;
    signed += byte > 0x7f ? byte - 0x100 : byte;
  }
  const digits = block
    .toString("latin1", at, at + length)
    .replace(/\0[\s\S]*$/, "")
    .trim();
  if (!/^[0-7]+$/.test(digits)) return false;
  const stated = Number.parseInt(digits, 8);
  return stated === unsigned || stated === signed;
}

function textOf(block: Buffer, [at, length]: readonly [number, number]): BytePath {
  const text = block.toString("latin1", at, at + length);
  const end = text.indexOf("\0");
  return end === -1 ? text : text.slice(0, end);
}

// Maps of sparse files: where the data lies that the archive has, in a file that is larger. GNU tar writes them in several formats.

import { ArchiveError } from "../errors.ts";
import type { ByteSource } from "./byte-source.ts";
import { BLOCK_BYTES, numberOf, paddingOf, sizeOf } from "./header.ts";
import { type PaxRecords, paxNumber } from "./pax.ts";

export interface Segment {
  readonly offset: number;
  readonly length: number;
}

export interface SparseMap {
  readonly segments: readonly Segment[];
  /** Size of the file with its holes. */
  readonly realSize: number;
  /** Bytes of the entry's content that the map itself took. */
  readonly mapBytes: number;
}

/** Limit on a map, which is held in memory: 16 MiB of segments. */
const MAX_SEGMENTS = 256 * 1024;

const OLD_FIRST_AT = 386;
const OLD_FIRST_COUNT = 4;
const OLD_EXTENDED_AT = 482;
const OLD_REAL_SIZE = [483, 12] as const;
const OLD_MORE_COUNT = 21;
const OLD_MORE_EXTENDED_AT = 504;
const OLD_NUMBER_BYTES = 12;

/** The oldest format: segments in the header, and in blocks after it. They are no part of the content. */
export async function readOldSparseMap(header: Buffer, source: ByteSource): Promise<SparseMap> {
  const realSize = sizeOf(numberOf(header, OLD_REAL_SIZE));
  const segments = oldSegments(header, OLD_FIRST_AT, OLD_FIRST_COUNT);
  for (let isExtended = header[OLD_EXTENDED_AT] !== 0; isExtended; ) {
    const block = await source.read(BLOCK_BYTES);
    segments.push(...oldSegments(block, 0, OLD_MORE_COUNT));
    if (segments.length > MAX_SEGMENTS) throw tooMany();
    isExtended = block[OLD_MORE_EXTENDED_AT] !== 0;
  }
  return checked({ segments, realSize, mapBytes: 0 });
}

function oldSegments(block: Buffer, start: number, count: number): Segment[] {
  const segments: Segment[] = [];
  for (let index = 0; index < count; index++) {
    const at = start + index * 2 * OLD_NUMBER_BYTES;
    if (block[at] === 0) break;
    const offset = sizeOf(numberOf(block, [at, OLD_NUMBER_BYTES]));
    segments.push({ offset, length: sizeOf(numberOf(block, [at + OLD_NUMBER_BYTES, OLD_NUMBER_BYTES])) });
  }
  return segments;
}

/** The formats 0.1, with the map in a record, and 1.0, with the map before the data. Undefined for a file that is not sparse. */
export async function readPaxSparseMap(pax: PaxRecords, source: ByteSource): Promise<SparseMap | undefined> {
  const realSize = paxNumber(pax, "GNU.sparse.realsize") ?? paxNumber(pax, "GNU.sparse.size");
  if (realSize === undefined) return undefined;
  const list = pax.get("GNU.sparse.map");
  if (list !== undefined) return checked({ segments: pairs(list.split(",")), realSize: sizeOf(realSize), mapBytes: 0 });
  if (pax.get("GNU.sparse.major") !== "1") throw new ArchiveError("the archive has a sparse file in a format that is not supported");
  const { numbers, bytes } = await readLines(source);
  return checked({ segments: pairs(numbers), realSize: sizeOf(realSize), mapBytes: bytes });
}

/** Decimal lines: the number of segments, then offset and length of each. Padded to whole blocks. */
async function readLines(source: ByteSource): Promise<{ numbers: readonly string[]; bytes: number }> {
  const numbers: string[] = [];
  let bytes = 0;
  let line = "";
  for (let wanted = 1; numbers.length < wanted; ) {
    const block = (await source.read(BLOCK_BYTES)).toString("latin1");
    bytes += BLOCK_BYTES;
    const lines = (line + block).split("\n");
    line = lines.pop() ?? "";
    numbers.push(...lines);
    if (line.length > BLOCK_BYTES) throw damaged();
    wanted = 1 + 2 * decimal(numbers[0] ?? "1");
    if (wanted > 1 + 2 * MAX_SEGMENTS) throw tooMany();
    if (numbers.length >= wanted) return { numbers: numbers.slice(1, wanted), bytes };
  }
  return { numbers: [], bytes };
}

function pairs(numbers: readonly string[]): Segment[] {
  if (numbers.length > 2 * MAX_SEGMENTS) throw tooMany();
  if (numbers.length === 1 && numbers[0] === "") return [];
  if (numbers.length % 2 !== 0) throw damaged();
  const segments: Segment[] = [];
  for (let index = 0; index < numbers.length; index += 2) {
    segments.push({ offset: decimal(numbers[index] ?? ""), length: decimal(numbers[index + 1] ?? "") });
  }
  return segments;
}

function decimal(text: string): number {
  if (!/^\d{1,16}$/.test(text)) throw damaged();
  return sizeOf(Number(text));
}

/** Segments are in order, do not overlap, and lie in the file. */
function checked(map: SparseMap): SparseMap {
  let end = 0;
  for (const { offset, length } of map.segments) {
    if (offset < end || offset + length > map.realSize) throw damaged();
    end = offset + length;
  }
  return map;
}

/** Whether the content in the archive has the size that the map states. */
export function fits(map: SparseMap, contentBytes: number): boolean {
  const data = map.segments.reduce((sum, { length }) => sum + length, 0);
  // GNU tar may pad the data in the content itself to whole blocks.
  return map.mapBytes + data === contentBytes || map.mapBytes + data + paddingOf(data) === contentBytes;
}

function damaged(): ArchiveError {
  return new ArchiveError("the archive is damaged: the map of a sparse file");
}

function tooMany(): ArchiveError {
  return new ArchiveError("the archive has a sparse file with too many holes");
}

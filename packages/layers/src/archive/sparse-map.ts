// The map of a sparse file in a tar archive (GNU format, version 1.0): decimal lines before the content, which is the file's data without
// its holes.

import { PlatformError } from "@skerry/base";
import { BLOCK_BYTES, paddingOf } from "./pax.ts";

export interface Segment {
  readonly offset: number;
  readonly length: number;
}

/** The largest map that is read. */
const MAX_SEGMENTS = 1_000_000;

/** Lines, padded to whole blocks. */
export function encodeSparseMap(segments: readonly Segment[]): Buffer {
  const lines = Buffer.from(`${segments.length}\n${segments.map(({ offset, length }) => `${offset}\n${length}\n`).join("")}`);
  return Buffer.concat([lines, Buffer.alloc(paddingOf(lines.length))]);
}

/** Reads a map block by block. `next` returns the next block of the entry's content. */
export async function decodeSparseMap(next: () => Promise<Buffer>, size: number): Promise<{ segments: Segment[]; bytes: number }> {
  const damaged = () => new PlatformError("archive_invalid", "the map of a sparse file in the archive is damaged");
  const numbers: number[] = [];
  let bytes = 0;
  let rest = "";
  let wanted = 1;
  while (numbers.length < wanted) {
    const block = await next();
    bytes += BLOCK_BYTES;
    const lines = (rest + block.toString("latin1")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (numbers.length === wanted) break;
      if (!/^\d{1,15}$/.test(line)) throw damaged();
      numbers.push(Number(line));
      if (numbers.length === 1) wanted = 1 + 2 * Number(line);
    }
    if (wanted > 1 + 2 * MAX_SEGMENTS || rest.length > 16 + BLOCK_BYTES) throw damaged();
  }
  const segments: Segment[] = [];
  let end = 0;
  for (let at = 1; at < wanted; at += 2) {
    const segment = { offset: numbers[at] ?? 0, length: numbers[at + 1] ?? 0 };
    if (segment.offset < end || segment.offset + segment.length > size) throw damaged();
    end = segment.offset + segment.length;
    segments.push(segment);
  }
  return { segments, bytes };
}

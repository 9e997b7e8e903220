/** A part of a file; `end` is one past its last byte. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export type RangeResult =
  | { readonly kind: "whole" }
  | { readonly kind: "parts"; readonly ranges: readonly ByteRange[] }
  | { readonly kind: "unsatisfiable" }
  | { readonly kind: "malformed" };

/** The `Range` header against a file of this size. Parts that do not overlap the file are left out while another one does. */
export function parseRanges(header: string | undefined, size: number): RangeResult {
  if (header === undefined || header === "") return { kind: "whole" };
  if (!header.startsWith("bytes=")) return { kind: "malformed" };
  const ranges: ByteRange[] = [];
  let outside = false;
  for (const part of header.slice("bytes=".length).split(",")) {
    if (part.trim() === "") continue;
    const range = parsePart(part.trim(), size);
    if (range === undefined) return { kind: "malformed" };
    if (range === "outside") outside = true;
    else ranges.push(range);
  }
  if (ranges.length === 0) {
    // Nothing of an empty file can be asked for, so asking for a part is answered with all of it.
    if (!outside || size === 0) return { kind: "whole" };
    return { kind: "unsatisfiable" };
  }
  // Asking for more than there is, in pieces, is an attack or a mistake; the whole file is the cheaper answer.
  const total = ranges.reduce((sum, range) => sum + range.end - range.start, 0);
  return total > size ? { kind: "whole" } : { kind: "parts", ranges };
}

function parsePart(part: string, size: number): ByteRange | "outside" | undefined {
  const match = /^(\d*)\s*-\s*(\d*)$/.exec(part);
  const [, first = "", last = ""] = match ?? [];
  if (!match || (first === "" && last === "")) return undefined;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "outside" : { start: size - length, end: size };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  if (start >= size) return "outside";
  return { start, end: last === "" ? size : Math.min(Number(last) + 1, size) };
}

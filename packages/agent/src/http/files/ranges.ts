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

/** Applies the `Range` header to a file of this size. Ranges outside the file are dropped if another one overlaps the file. */
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
    // No range of an empty file can be satisfied, so the response is the whole file.
    if (!outside || size === 0) return { kind: "whole" };
    return { kind: "unsatisfiable" };
  }
  // Ranges that add up to more than the file are an attack or a mistake. The whole file is the cheaper response.
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

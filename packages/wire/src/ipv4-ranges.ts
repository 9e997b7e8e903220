// Sets of IPv4 addresses, as sorted ranges that do not overlap.

export interface Ipv4Range {
  /** The first and the last address, as numbers. */
  readonly first: number;
  readonly last: number;
}

const MAX = 2 ** 32 - 1;
export const ALL_IPV4: Ipv4Range = { first: 0, last: MAX };

/** Reads an address ("192.0.2.1") or a prefix ("192.0.2.0/24", whose host bits are ignored). Undefined for anything else. */
export function parseIpv4Range(text: string): Ipv4Range | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:\/(\d{1,2}))?$/.exec(text);
  if (!match) return undefined;
  const parts = match.slice(1, 5);
  const length = Number(match[5] ?? 32);
  // A leading zero would be octal for some programs.
  const isNumber = (part: string) => String(Number(part)) === part;
  if (length > 32 || !isNumber(match[5] ?? "32") || parts.some((part) => Number(part) > 255 || !isNumber(part))) return undefined;
  const address = parts.reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - length);
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1 };
}

/** The addresses of `ranges` that are not in `holes`. */
export function withoutRanges(ranges: readonly Ipv4Range[], holes: readonly Ipv4Range[]): readonly Ipv4Range[] {
  const gaps = merged(holes);
  const left: Ipv4Range[] = [];
  for (const { first, last } of merged(ranges)) {
    let from = first;
    for (const gap of gaps) {
      if (gap.last < from) continue;
      if (gap.first > last) break;
      if (gap.first > from) left.push({ first: from, last: gap.first - 1 });
      from = gap.last + 1;
    }
    if (from <= last) left.push({ first: from, last });
  }
  return left;
}

/** "192.0.2.1", or "192.0.2.1-192.0.2.9". */
export function ipv4RangeText({ first, last }: Ipv4Range): string {
  return first === last ? addressText(first) : `${addressText(first)}-${addressText(last)}`;
}

/** Sorted, and without overlaps. Neighbours become one range. */
function merged(ranges: readonly Ipv4Range[]): Ipv4Range[] {
  const result: Ipv4Range[] = [];
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = result.at(-1);
    if (!before || range.first > before.last + 1) result.push(range);
    else if (range.last > before.last) result[result.length - 1] = { first: before.first, last: range.last };
  }
  return result;
}

function addressText(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

/** Whether an address such as "192.0.2.1" is in one of the ranges, which are sorted and do not overlap. True for what is no address. */
export function isInRanges(ranges: readonly Ipv4Range[], address: string): boolean {
  const parsed = parseIpv4Range(address);
  if (parsed === undefined) return true;
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const range = ranges[middle];
    if (range === undefined || range.first > parsed.first) high = middle;
    else if (range.last < parsed.first) low = middle + 1;
    else return true;
  }
  return false;
}

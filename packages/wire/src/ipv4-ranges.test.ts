import { expect, test } from "vitest";
import { ALL_IPV4, ipv4RangeText, isInRanges, parseIpv4Range, withoutRanges } from "./ipv4-ranges.ts";

const text = (entry: string) => {
  const range = parseIpv4Range(entry);
  return range && ipv4RangeText(range);
};

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["192.0.2.1/32", "192.0.2.1"],
  ["192.0.2.0/24", "192.0.2.0-192.0.2.255"],
  ["192.0.2.77/24", "192.0.2.0-192.0.2.255"],
  ["0.0.0.0/0", "0.0.0.0-255.255.255.255"],
  ["255.255.255.255", "255.255.255.255"],
])("%s means %s", (entry, expected) => {
  expect(text(entry)).toBe(expected);
});

test.each([
  "",
  "192.0.2",
  "192.0.2.256",
  "192.0.2.1/33",
  "192.0.2.1/",
  "192.0.2.1/08",
  "192.0.02.1",
  " 192.0.2.1",
  "192.0.2.1\n",
  "192.0.2.1-192.0.2.9",
  "2001:db8::1",
  "example.com",
  "1.2.3.4 } drop",
])("%j is no address", (entry) => {
  expect(parseIpv4Range(entry)).toBeUndefined();
});

test.each<[string, string[], string[], string[]]>([
  ["nothing of nothing", [], ["192.0.2.1"], []],
  ["neighbours and overlaps are one range", ["192.0.2.0/25", "192.0.2.128/25", "192.0.2.7"], [], ["192.0.2.0-192.0.2.255"]],
  ["a hole in the middle", ["192.0.2.0/30"], ["192.0.2.1"], ["192.0.2.0", "192.0.2.2-192.0.2.3"]],
  ["holes at both ends", ["192.0.2.0/30"], ["192.0.2.0", "192.0.2.3"], ["192.0.2.1-192.0.2.2"]],
  ["a hole across ranges", ["192.0.2.1", "192.0.2.3", "192.0.2.9"], ["192.0.2.2/31"], ["192.0.2.1", "192.0.2.9"]],
  ["everything", ["192.0.2.0/24"], ["0.0.0.0/0"], []],
  ["all but one", ["0.0.0.0/0"], ["1.1.1.1"], ["0.0.0.0-1.1.1.0", "1.1.1.2-255.255.255.255"]],
  ["all but the last", ["0.0.0.0/0"], ["255.255.255.255"], ["0.0.0.0-255.255.255.254"]],
])("%s", (_what, ranges, holes, left) => {
  const parse = (entries: string[]) => entries.map((entry) => parseIpv4Range(entry) ?? ALL_IPV4);
  expect(withoutRanges(parse(ranges), parse(holes)).map(ipv4RangeText)).toEqual(left);
});

test("the difference of random sets has the right addresses", () => {
  const any = (below: number) => Math.floor(Math.random() * below);
  for (let round = 0; round < 200; round += 1) {
    const some = () =>
      Array.from({ length: any(6) }, () => {
        const first = any(60);
        return { first, last: first + any(12) };
      });
    const [ranges, holes] = [some(), some()];
    const inside = (list: readonly { first: number; last: number }[], n: number) => list.some(({ first, last }) => first <= n && n <= last);
    const left = withoutRanges(ranges, holes);
    for (let n = 0; n < 80; n += 1)
      expect(inside(left, n), JSON.stringify({ ranges, holes, n })).toBe(inside(ranges, n) && !inside(holes, n));
  }
});

test("an address is found in sorted ranges, and what is no address is in all of them", () => {
  const ranges = withoutRanges(
    ["10.0.0.0/8", "192.0.2.4/31", "198.51.100.7"].map((entry) => parseIpv4Range(entry) ?? ALL_IPV4),
    [],
  );
  const inside = ["10.0.0.0", "10.255.255.255", "192.0.2.4", "192.0.2.5", "198.51.100.7", "no address", "::1", "10.0.0.0x"];
  const outside = ["9.255.255.255", "11.0.0.0", "192.0.2.3", "192.0.2.6", "198.51.100.8", "255.255.255.255", "0.0.0.0"];
  for (const address of inside) expect(isInRanges(ranges, address), address).toBe(true);
  for (const address of outside) expect(isInRanges(ranges, address), address).toBe(false);
  expect(isInRanges([], "1.1.1.1")).toBe(false);
});

import { expect, it } from "vitest";
import { parseCpuStat, parseMemInfo, parseProcessTicks, parseQuota } from "./parse.ts";

it("reads memory in bytes", () => {
  const text = "MemTotal:        1024 kB\nMemFree: 1 kB\nMemAvailable:     512 kB\nCached:  10 kB\nSwapCached: 99 kB\nSReclaimable: 2 kB\n";
  expect(parseMemInfo(text)).toEqual({ total: 1024 * 1024, available: 512 * 1024, cache: 12 * 1024 });
});

it("leaves idle, iowait and guest time out of the busy ticks", () => {
  expect(parseCpuStat("cpu  10 1 5 1000 100 2 3 4 7 7\ncpu0 1 1 1 1\n")).toBe(25);
});

it("counts a process and the children it waited for, whatever its name", () => {
  expect(parseProcessTicks("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0")).toBe(10);
});

it.each([
  ["max 100000", undefined],
  ["150000 100000\n", 1.5],
  ["-1 100000", undefined],
  ["", undefined],
])("reads the quota %j", (text, expected) => {
  expect(parseQuota(text)).toBe(expected);
});

import { expect, it } from "vitest";
import { parseCpuStat, parseGroupMemory, parseMemInfo, parseQuota } from "./parse.ts";

it("reads memory in bytes", () => {
  const text = "MemTotal:        1024 kB\nMemFree: 1 kB\nMemAvailable:     512 kB\nCached:  10 kB\nSwapCached: 99 kB\nSReclaimable: 2 kB\n";
  expect(parseMemInfo(text)).toEqual({ total: 1024 * 1024, used: 512 * 1024, cache: 12 * 1024 });
});

it("does not take mapped files for used memory where the kernel leaves them out of what is available", () => {
  const text = "MemTotal: 655360 kB\nMemFree: 519260 kB\nMemAvailable: 519260 kB\nCached: 113520 kB\n";
  expect(parseMemInfo(text)).toEqual({ total: 655_360 * 1024, used: 22_580 * 1024, cache: 113_520 * 1024 });
});

it("takes page cache, and not shared memory, out of what a cgroup uses", () => {
  const v2 = { limit: "1000\n", current: "600\n", stat: "anon 100\nfile 450\nshmem 50\ninactive_file 300\nactive_file 100\n" };
  expect(parseGroupMemory(v2)).toEqual({ total: 1000, used: 200, cache: 400 });
  const v1 = {
    limit: "1000\n",
    current: "600\n",
    stat: "inactive_file 1\nactive_file 1\ntotal_inactive_file 300\ntotal_active_file 100\n",
  };
  expect(parseGroupMemory(v1)).toEqual({ total: 1000, used: 200, cache: 400 });
  expect(parseGroupMemory({ limit: "max\n", current: "600\n", stat: "" })).toBeUndefined();
  expect(parseGroupMemory({})).toBeUndefined();
});

it("leaves idle, iowait and guest time out of the busy ticks", () => {
  expect(parseCpuStat("cpu  10 1 5 1000 100 2 3 4 7 7\ncpu0 1 1 1 1\n")).toBe(25);
});

it.each([
  ["max 100000", undefined],
  ["150000 100000\n", 1.5],
  ["-1 100000", undefined],
  ["", undefined],
])("reads the quota %j", (text, expected) => {
  expect(parseQuota(text)).toBe(expected);
});

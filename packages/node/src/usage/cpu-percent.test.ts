import { expect, it } from "vitest";
import { cpuPercent } from "./cpu-percent.ts";

const at = (atMs: number, cpuSeconds: number) => ({ atMs, cpuSeconds });

it("is the share of all CPUs", () => {
  expect(cpuPercent(at(0, 0), at(5_000, 5), 2)).toBe(50);
  expect(cpuPercent(at(5_000, 5), at(10_000, 5.5), 1)).toBe(10);
});

it("shows a little use as more than nothing, and no use as nothing", () => {
  expect(cpuPercent(at(0, 0), at(5_000, 0.000_01), 4)).toBe(0.01);
  expect(cpuPercent(at(0, 3), at(5_000, 3), 4)).toBe(0);
});

it("stays between 0 and 100, also when a clock or a counter goes back", () => {
  expect(cpuPercent(at(0, 0), at(1_000, 9), 1)).toBe(100);
  expect(cpuPercent(at(9_000, 0), at(1_000, 1), 1)).toBe(0);
  expect(cpuPercent(at(0, 9), at(1_000, 1), 1)).toBe(0);
});

import type { SandboxMetric } from "@skerry/store";
import { expect, it } from "vitest";
import { downSample, downSampleTeam } from "./down-sample.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

function metric(at: number, cpuPercent: number): SandboxMetric {
  const zero = { memoryUsedBytes: 1, memoryTotalBytes: 4, memoryCacheBytes: 0, diskUsedBytes: 2, diskTotalBytes: 4 };
  return { sandboxId: "i", at, cpuCount: 2, cpuPercent, ...zero };
}

it.each([
  [HOUR_MS - 1, 5_000],
  [HOUR_MS, 30_000],
  [6 * HOUR_MS, MINUTE_MS],
  [12 * HOUR_MS, 2 * MINUTE_MS],
  [DAY_MS, 5 * MINUTE_MS],
  [7 * DAY_MS, 15 * MINUTE_MS],
])("shows a range of %i ms in steps of %i ms", (rangeMs, stepMs) => {
  const metrics = Array.from({ length: 2_000 }, (_, round) => metric(round * 5_000, 1));
  const shown = downSample(metrics, { start: 0, end: rangeMs });
  expect((shown[1]?.at ?? 0) - (shown[0]?.at ?? 0)).toBe(stepMs);
  expect(downSampleTeam([], { start: 0, end: rangeMs }).at(1)?.at).toBe(stepMs);
});

it("shows averages, and leaves out steps without measurements", () => {
  const shown = downSample([metric(0, 10), metric(5_000, 20), metric(90_000, 1)], { start: 0, end: 2 * HOUR_MS });
  expect(shown).toEqual([metric(0, 15), metric(90_000, 1)]);
});

it("shows what a team did not run as 0, and starts as a rate", () => {
  const row = { teamId: "t", stepMs: 5_000 };
  const range = { start: 0, end: 15_000 };
  const rows = [
    { ...row, at: 5_000, concurrent: 3, starts: 10 },
    { ...row, at: 10_000, concurrent: 2, starts: 0 },
  ];
  expect(downSampleTeam(rows, range)).toEqual([
    { at: 0, concurrent: 0, startRate: 0 },
    { at: 5_000, concurrent: 3, startRate: 2 },
    { at: 10_000, concurrent: 2, startRate: 0 },
    { at: 15_000, concurrent: 0, startRate: 0 },
  ]);
  expect(downSampleTeam([{ ...row, stepMs: 30_000, at: 5_000, concurrent: 1, starts: 30 }], range)[1]?.startRate).toBe(1);
});

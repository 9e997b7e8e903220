import { expect, it } from "vitest";
import { clockProblem } from "./clock.ts";

it.each([
  [0, undefined],
  [-50, undefined],
  [-51, -51],
  [5_000, undefined],
  [5_001, 5_001],
])("a clock that is %i ms ahead is %j", (aheadMs, expected) => {
  expect(clockProblem(1_000_000_000n * 1_000_000n, 1_000_000_000 + aheadMs)).toBe(expected);
});

import { describe, expect, it } from "vitest";
import { AdaptiveLimit } from "./adaptive-limit.ts";

/** Runs a machine that does `throughputAt(limit)` per second, and answers with the limits that were tried. */
function run(throughputAt: (limit: number) => number, rounds: number): number[] {
  const limit = new AdaptiveLimit({ min: 2, max: 32 });
  const tried: number[] = [];
  let now = 0;
  for (let at = 0; at < rounds * 64; at += 1) {
    now += 1000 / throughputAt(limit.value);
    limit.done({ isSaturated: true, now });
    if (tried.at(-1) !== limit.value) tried.push(limit.value);
  }
  return tried;
}

describe("AdaptiveLimit", () => {
  it("grows while more at once gets more done", () => {
    const tried = run((limit) => limit * 10, 40);
    // One more of twenty is within what counts as noise.
    expect(Math.max(...tried)).toBeGreaterThanOrEqual(16);
  });

  it("stays near what the processors can do", () => {
    const tried = run((limit) => Math.min(limit, 4) * 10, 40);
    expect(Math.max(...tried.slice(5))).toBeLessThanOrEqual(6);
  });

  it("comes down when too much at once slows all down", () => {
    const tried = run((limit) => (limit <= 3 ? limit * 10 : 30 / limit), 40);
    expect(Math.max(...tried.slice(8))).toBeLessThanOrEqual(4);
  });

  it("learns nothing while nobody waits", () => {
    const limit = new AdaptiveLimit({ min: 2, max: 32 });
    for (let now = 0; now < 1000; now += 1) limit.done({ isSaturated: false, now });
    expect(limit.value).toBe(4);
  });
});

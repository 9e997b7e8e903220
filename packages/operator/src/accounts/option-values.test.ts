import { InvalidArgumentError } from "commander";
import { expect, test } from "vitest";
import { addLimit, addPair, readExpiry, readSeconds } from "./option-values.ts";

test("an expiry is a time, or a time from now", () => {
  expect(readExpiry("2030-01-01T00:00:00Z")).toBe("2030-01-01T00:00:00.000Z");
  expect(readExpiry("2030-01-01T02:00+02:00")).toBe("2030-01-01T00:00:00.000Z");
  const before = Date.now();
  const inTwoDays = Date.parse(readExpiry("2d"));
  expect(inTwoDays).toBeGreaterThanOrEqual(before + 2 * 86_400_000);
  expect(inTwoDays).toBeLessThanOrEqual(Date.now() + 2 * 86_400_000);
});

// A day without a zone would mean another time on another host.
test.each(["tomorrow", "2030-01-01", "2030-01-01T00:00:00", "2030-13-01T00:00:00Z", "5", "5y", "-5d", ""])("%j is no expiry", (text) => {
  expect(() => readExpiry(text)).toThrow(InvalidArgumentError);
});

test("a number of seconds may have a unit", () => {
  expect([readSeconds("90"), readSeconds("2m"), readSeconds("1h"), readSeconds("7d")]).toEqual([90, 120, 3600, 604_800]);
  for (const text of ["", "1.5h", "-1", "7w"]) expect(() => readSeconds(text)).toThrow(InvalidArgumentError);
});

test("pairs and limits are collected", () => {
  expect(addPair("b=2=3", addPair("a=1"))).toEqual({ a: "1", b: "2=3" });
  expect(addLimit("cpu=none", addLimit("sandboxes=5"))).toEqual({ sandboxes: 5, cpu: null });
  for (const text of ["a", "=1"]) expect(() => addPair(text)).toThrow(InvalidArgumentError);
  for (const text of ["sandboxes", "sandboxes=", "sandboxes=-1", "sandboxes=1.5", "=1"])
    expect(() => addLimit(text)).toThrow(InvalidArgumentError);
});

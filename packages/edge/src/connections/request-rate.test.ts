import { expect, test } from "vitest";
import { RequestRate } from "./request-rate.ts";

/** Returns how many of 100 requests are permitted. */
function flood(rate: RequestRate, key: string): number {
  let permitted = 0;
  for (let n = 0; n < 100; n++) {
    if (rate.isSpent(key)) continue;
    rate.take(key);
    permitted++;
  }
  return permitted;
}

test("a key has two seconds of its rate at once, and then its rate; others have their own", () => {
  let now = 0;
  const rate = new RequestRate(10, () => now);
  expect([flood(rate, "a"), flood(rate, "b")]).toEqual([20, 20]);
  now += 500;
  expect(flood(rate, "a")).toBe(5);
  now += 60_000;
  expect(flood(rate, "a")).toBe(20);
});

test("0 is no limit", () => {
  expect(flood(new RequestRate(0, () => 0), "a")).toBe(100);
});

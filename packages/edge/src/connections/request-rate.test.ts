import { AGENT_PORT } from "@skerry/wire";
import { expect, test } from "vitest";
import { RequestRate } from "./request-rate.ts";

const at = (sandboxId: string, port = 80) => ({ sandboxId: sandboxId as never, port });

/** Returns how many of 100 requests are permitted. */
function flood(rate: RequestRate, target: ReturnType<typeof at>): number {
  return Array.from({ length: 100 }, () => rate.take(target)).filter(Boolean).length;
}

test("a sandbox has two seconds of its rate at once, on all its ports together, and then its rate", () => {
  let now = 0;
  const rate = new RequestRate(10, () => now);
  expect(rate.take(at("ia", 81))).toBe(true);
  expect(flood(rate, at("ia"))).toBe(19);
  now += 500;
  expect(flood(rate, at("ia", 82))).toBe(5);
  now += 60_000;
  expect(flood(rate, at("ia"))).toBe(20);
});

test("other sandboxes, and the agent of the same one, have their own", () => {
  const rate = new RequestRate(10, () => 0);
  for (const target of [at("ia"), at("ia", AGENT_PORT), at("ib")]) expect(flood(rate, target)).toBe(20);
});

test("0 is no limit", () => {
  expect(flood(new RequestRate(0, () => 0), at("ia"))).toBe(100);
});

import { expect, test } from "vitest";
import { AttemptLimit, networkOf } from "./attempt-limit.ts";

function exhaust(limit: AttemptLimit, address: string): number {
  let taken = 0;
  while (limit.take(address)) taken++;
  return taken;
}

test("an address has 60 attempts, and one more each second", () => {
  let now = 0;
  const limit = new AttemptLimit(() => now);
  expect(exhaust(limit, "192.0.2.1")).toBe(60);
  now += 999;
  expect(limit.take("192.0.2.1")).toBe(false);
  now += 1;
  expect(exhaust(limit, "192.0.2.1")).toBe(1);
  now += 3_600_000;
  expect(exhaust(limit, "192.0.2.1")).toBe(60);
});

test("no address uses up the attempts of another", () => {
  const limit = new AttemptLimit(() => 0);
  expect(exhaust(limit, "192.0.2.1")).toBe(60);
  expect(exhaust(limit, "192.0.2.2")).toBe(60);
  expect(exhaust(limit, "2001:db8::1")).toBe(60);
  expect(exhaust(limit, "2001:db8:0:0:ffff::9")).toBe(0);
  expect(exhaust(limit, "2001:db8:0:1::1")).toBe(60);
});

test("an attempt that did not fail costs nothing, and adds nothing", () => {
  const limit = new AttemptLimit(() => 0);
  for (let round = 0; round < 1_000; round++) {
    expect(limit.take("192.0.2.1")).toBe(true);
    limit.giveBack("192.0.2.1");
  }
  limit.giveBack("192.0.2.1");
  expect(exhaust(limit, "192.0.2.1")).toBe(60);
});

test("many addresses are not remembered for ever", () => {
  const limit = new AttemptLimit(() => 0);
  expect(exhaust(limit, "192.0.2.1")).toBe(60);
  for (let index = 0; index < 10_000; index++) limit.take(`10.0.${index >> 8}.${index & 255}`);
  expect(limit.take("192.0.2.1")).toBe(true);
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::1", networkOf("::2")],
  ["fe80::1%eth0", networkOf("fe80::2")],
  ["", ""],
  ["unknown", "unknown"],
  ["x".repeat(100), "x".repeat(64)],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

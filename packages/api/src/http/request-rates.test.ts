import { expect, it } from "vitest";
import type { Caller } from "../keys/caller.ts";
import { DEFAULT_LIMITS } from "../teams/limits.ts";
import { RequestRates } from "./request-rates.ts";

const caller = (id: string, actor = "key:1"): Caller => ({ kind: "team", team: { id, slug: id, name: id }, actor, scopes: ["*"] });

function ratesOf(rates: Record<string, number | null>) {
  const clock = { ms: 0 };
  let reads = 0;
  const limitsOf = async (teamId: string) => {
    reads += 1;
    return { ...DEFAULT_LIMITS, requestsPerSecond: rates[teamId] ?? null };
  };
  const counted = new RequestRates({ limitsOf, defaults: { ...DEFAULT_LIMITS, requestsPerSecond: 1 }, now: () => clock.ms });
  return { counted, clock, rates, reads: () => reads };
}

it("grants a team its rate for each operation, and refills it", async () => {
  const { counted, clock } = ratesOf({ a: 2, b: 2 });
  const take = async (id: string, operation = "get") => (await counted.take(caller(id), operation))?.isAllowed;
  expect([await take("a"), await take("a"), await take("a")]).toEqual([true, true, false]);
  expect([await take("b"), await take("a", "list")]).toEqual([true, true]);
  clock.ms += 499;
  expect(await take("a")).toBe(false);
  clock.ms += 1;
  expect([await take("a"), await take("a")]).toEqual([true, false]);
  clock.ms += 60_000;
  expect([await take("a"), await take("a"), await take("a")]).toEqual([true, true, false]);
});

it("tells what is left, and when all of it is back", async () => {
  const { counted } = ratesOf({ a: 4 });
  await counted.take(caller("a"), "get");
  expect((await counted.take(caller("a"), "get"))?.headers).toEqual({
    "RateLimit-Limit": "4",
    "RateLimit-Remaining": "2",
    "RateLimit-Reset": "1",
  });
});

it("limits users like a team without a tier, and neither the operator nor a team without a limit", async () => {
  const { counted } = ratesOf({ a: 1, free: null });
  const user: Caller = { kind: "user", userId: "u", scopes: ["*"], expiresAt: null, needs: "account:read", mayBlocked: true };
  expect([(await counted.take(user, "x"))?.isAllowed, (await counted.take(user, "x"))?.isAllowed]).toEqual([true, false]);
  for (const unlimited of [caller("free"), caller("a", "admin"), { kind: "admin" }, { kind: "anyone" }] as const) {
    expect(await counted.take(unlimited, "x")).toBeUndefined();
  }
});

it("reads a team's rate every five seconds", async () => {
  const { counted, clock, rates, reads } = ratesOf({ a: 1 });
  for (let at = 0; at < 3; at += 1) await counted.take(caller("a"), "get");
  expect(reads()).toBe(1);
  rates.a = null;
  clock.ms += 5_000;
  expect(await counted.take(caller("a"), "get")).toBeUndefined();
  expect(reads()).toBe(2);
});

import type { Delivery } from "@skerry/store";
import { describe, expect, it } from "vitest";
import { delayOf, reportOf } from "./delivery-plan.ts";

const policy = { firstMs: 1_000, longestMs: 60_000, giveUpMs: 600_000 };
const about = { policy, now: 1_000_000, random: () => 0.5, waiting: 1 };
const ok = { kind: "ok", status: 200 } as const;
const bad = { kind: "failed", error: "no", isGone: false } as const;
const sound = { failures: 0, failingSince: undefined };

function before(fields: Partial<Delivery>): Delivery {
  return { sequence: 1, state: "pending", attempts: 1, firstAt: 900_000, nextAt: 0, error: "", ...fields };
}

describe("the next attempt of a delivery", () => {
  it("comes later each time, up to a limit, and not at the same moment for all", () => {
    expect([1, 2, 3, 7, 100].map((failures) => delayOf(failures, policy, () => 0.5))).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
    expect(delayOf(1, policy, () => 0)).toBe(800);
    expect(delayOf(1, policy, () => 1)).toBe(1_200);
  });

  it("waits for the event alone when the endpoint takes others", () => {
    const report = reportOf(
      sound,
      [
        { sequence: 1, before: undefined, sent: bad },
        { sequence: 2, before: undefined, sent: ok },
      ],
      about,
    );
    expect(report).toEqual({
      delivered: [2],
      failed: [{ sequence: 1, attempts: 1, firstAt: 1_000_000, nextAt: 1_001_000, isDead: false, error: "no" }],
      failing: undefined,
    });
  });

  it("waits for the endpoint when it takes nothing", () => {
    const hook = { failures: 2, failingSince: 700_000 };
    const report = reportOf(hook, [{ sequence: 1, before: before({ attempts: 4 }), sent: bad }], about);
    expect(report.failed).toMatchObject([{ attempts: 5, firstAt: 900_000, nextAt: 1_016_000, isDead: false }]);
    expect(report.failing).toEqual({ failures: 3, since: 700_000, retryAt: 1_004_000, error: "no" });
  });

  it("is none after too long: the event is a dead letter, and an endpoint that took nothing is disabled", () => {
    const old = before({ firstAt: 400_000 });
    const attempts = [{ sequence: 1, before: old, sent: bad }];
    expect(reportOf(sound, attempts, about).failed).toMatchObject([{ isDead: true }]);
    const hook = { failures: 9, failingSince: 400_000 };
    expect(reportOf(hook, attempts, about).failing).not.toHaveProperty("disable");
    expect(reportOf(hook, attempts, { ...about, waiting: 2 }).failing).toMatchObject({ disable: "failing" });
  });

  it("is none for an endpoint that wants nothing any more", () => {
    const gone = { ...bad, isGone: true };
    const report = reportOf(
      sound,
      [
        { sequence: 1, before: undefined, sent: gone },
        { sequence: 2, before: undefined, sent: ok },
      ],
      about,
    );
    expect(report.failing).toMatchObject({ disable: "gone" });
  });
});

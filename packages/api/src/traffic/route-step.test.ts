import type { Sandbox, SandboxState } from "@skerry/store";
import { expect, test } from "vitest";
import { routeStep as stepOf } from "./route-step.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const DAY = 24 * 3_600_000;

function known(state: SandboxState, fields: Partial<Sandbox> = {}) {
  return {
    state,
    stateChangedAt: NOW - 1_000,
    endAt: NOW + 1_000,
    endedAt: null,
    pausedAt: NOW - 1_000,
    endReason: null,
    autoPause: true,
    autoPauseMemory: true,
    autoResume: true,
    imageHasMemory: true,
    agentUnresponsive: null,
    ...fields,
  };
}

const routeStep = (sandbox: Parameters<typeof stepOf>[0], now: number) => stepOf(sandbox, { now, isProbe: false });

const paused = { kind: "refuse", refusal: { state: "paused" } };
const unknown = { kind: "refuse", refusal: { state: "unknown" } };

test("what never was, and what has not started, is unknown", () => {
  expect(routeStep(undefined, NOW)).toEqual(unknown);
  expect(routeStep(known("starting"), NOW)).toEqual(unknown);
});

test.each<SandboxState>(["paused", "copying"])("one that is %s is woken where it was made to, and has its memory", (state) => {
  expect(routeStep(known(state), NOW)).toEqual({ kind: "wake" });
  expect(routeStep(known(state, { autoResume: false }), NOW)).toEqual(paused);
  expect(routeStep(known(state, { imageHasMemory: false }), NOW)).toEqual(paused);
  expect(routeStep(known(state, { agentUnresponsive: true }), NOW)).toEqual(paused);
});

test("one that is being paused is woken by traffic that may; one that is being resumed is waited for in any case", () => {
  expect(routeStep(known("pausing", { imageHasMemory: null }), NOW)).toEqual({ kind: "wake" });
  expect(routeStep(known("pausing", { autoResume: false }), NOW)).toEqual(paused);
  expect(routeStep(known("resuming", { autoResume: false }), NOW)).toEqual({ kind: "wait" });
});

test("who asks for its health right after the pause does not undo it; later that wakes it like anything else", () => {
  const probe = (state: SandboxState, pausedAt: number | null) => stepOf(known(state, { pausedAt }), { now: NOW, isProbe: true });
  expect(probe("pausing", null)).toEqual(paused);
  expect(probe("paused", NOW - 9_999)).toEqual(paused);
  expect(probe("paused", NOW - 10_000)).toEqual({ kind: "wake" });
  expect(probe("resuming", NOW)).toEqual({ kind: "wait" });
});

test.each<SandboxState>(["running", "snapshotting"])("one that is %s has a route, until its time is over", (state) => {
  expect(routeStep(known(state), NOW)).toEqual({ kind: "look_again" });
  const over = { endAt: NOW };
  expect(routeStep(known(state, over), NOW)).toEqual({ kind: "wake" });
  expect(routeStep(known(state, { ...over, autoResume: false }), NOW)).toEqual(paused);
  expect(routeStep(known(state, { ...over, autoPauseMemory: false }), NOW)).toEqual(paused);
  expect(routeStep(known(state, { ...over, autoPause: false }), NOW)).toEqual({
    kind: "refuse",
    refusal: { state: "ended", endReason: "timeout", endedAt: "2026-03-01T12:00:00.000Z" },
  });
});

test("one that ended says when and why, for a day", () => {
  const told = (fields: Partial<Sandbox>) => routeStep(known("ended", fields), NOW);
  expect(told({ endedAt: NOW - DAY, endReason: "memory" })).toEqual({
    kind: "refuse",
    refusal: { state: "ended", endReason: "memory", endedAt: "2026-02-28T12:00:00.000Z" },
  });
  expect(told({ endedAt: NOW - DAY - 1, endReason: "memory" })).toEqual(unknown);
  expect(routeStep(known("killing", { endReason: "request" }), NOW)).toEqual({
    kind: "refuse",
    refusal: { state: "ended", endReason: "request", endedAt: "2026-03-01T11:59:59.000Z" },
  });
});

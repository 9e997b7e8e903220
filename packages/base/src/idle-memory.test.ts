import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { IdleMemory } from "./idle-memory.ts";

let processorUs = 0;
let standstillMs = 0;
let givenBack = 0;
let memory: IdleMemory;

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ["setTimeout", "Date"] });
  vi.spyOn(performance, "now").mockImplementation(() => Date.now() + standstillMs);
  vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: processorUs, system: 0 }));
  processorUs = standstillMs = givenBack = 0;
  memory = new IdleMemory({
    worthBytes: Number.POSITIVE_INFINITY,
    trim: () => {
      givenBack += 1;
    },
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it("returns memory once, some seconds after the last work", () => {
  memory.touch();
  vi.advanceTimersByTime(2_000);
  memory.touch();
  vi.advanceTimersByTime(2_900);
  expect(givenBack).toBe(0);
  vi.advanceTimersByTime(200);
  expect(givenBack).toBe(1);
  vi.advanceTimersByTime(60_000);
  expect(givenBack).toBe(1);
  memory.touch();
  vi.advanceTimersByTime(3_100);
  expect(givenBack).toBe(2);
});

it("waits while the process uses the CPU without a request", () => {
  memory.touch();
  for (let second = 0; second < 30; second++) {
    processorUs += 200_000;
    vi.advanceTimersByTime(1_000);
  }
  expect(givenBack).toBe(0);
  vi.advanceTimersByTime(6_000);
  expect(givenBack).toBe(1);
});

it.each([2_550, 2_650, 2_750, 2_850, 2_950])(
  "restarts the idle period in a process that was restored from an image, taken after %i ms without work",
  (quietMs) => {
    memory.touch();
    vi.advanceTimersByTime(quietMs);
    standstillMs = 200;
    // A restored agent gets its identity within this time.
    vi.advanceTimersByTime(400);
    expect(givenBack).toBe(0);
    vi.advanceTimersByTime(3_500);
    expect(givenBack).toBe(1);
  },
);

import { expect, it } from "vitest";
import { counter, listMetrics, observedCounter, observedGauge, readMetrics } from "./metric-registry.ts";

async function linesOf(name: string): Promise<string[]> {
  return (await readMetrics()).split("\n").filter((line) => line.startsWith(name));
}

it("adds up the values of several sources", async () => {
  const rooms = observedGauge({ name: "test_rooms", help: "Rooms.", labels: ["state"] });
  const end = rooms.observe(() => [{ value: 2, labels: { state: "free" } }]);
  rooms.observe(async () => [
    { value: 3, labels: { state: "free" } },
    { value: 1, labels: { state: "used" } },
  ]);
  expect(await linesOf("test_rooms")).toEqual(['test_rooms{state="free"} 5', 'test_rooms{state="used"} 1']);
  end();
  expect(await linesOf("test_rooms")).toEqual(['test_rooms{state="free"} 3', 'test_rooms{state="used"} 1']);
});

it("shows no value rather than 0 where nothing was read", async () => {
  const lag = observedGauge({ name: "test_lag_seconds", help: "Lag." });
  const bytes = observedCounter({ name: "test_bytes_total", help: "Bytes." });
  expect([await linesOf("test_lag"), await linesOf("test_bytes")]).toEqual([[], []]);
  lag.observe(() => [{ value: 0 }]);
  bytes.observe(() => [{ value: 7 }]);
  expect([await linesOf("test_lag"), await linesOf("test_bytes")]).toEqual([["test_lag_seconds 0"], ["test_bytes_total 7"]]);
});

it("a source that fails or never answers takes no other value with it", async () => {
  const broken = observedGauge({ name: "test_broken", help: "Broken.", labels: ["part"] });
  broken.observe(() => Promise.reject(new Error("the database is away")));
  broken.observe(() => {
    throw new Error("gone");
  });
  const endSilent = broken.observe(() => new Promise(() => {}));
  broken.observe(() => [{ value: 4, labels: { part: "sound" } }]);
  expect(await linesOf("test_broken")).toEqual(['test_broken{part="sound"} 4']);
  // Otherwise the next readings wait for it as well.
  endSilent();
});

it("does not ask a source again that says that it is gone", async () => {
  let asked = 0;
  const pools = observedGauge({ name: "test_pools", help: "Pools." });
  pools.observe(() => {
    asked++;
    return undefined;
  });
  expect([await linesOf("test_pools"), await linesOf("test_pools"), asked]).toEqual([[], [], 1]);
});

it("lists what is declared, with labels", () => {
  counter({ name: "test_listed_total", help: "Listed.", labels: ["result"] });
  expect(listMetrics()).toContainEqual({ name: "test_listed_total", type: "counter", help: "Listed.", labels: ["result"] });
});

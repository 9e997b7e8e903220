import { expect, it } from "vitest";
import { StartGate } from "./start-gate.ts";

const gateOf = (options: { maxWaiting?: number; maxWaitMs?: number } = {}) =>
  new StartGate({ limit: { min: 1, max: 2 }, maxWaiting: options.maxWaiting ?? 1, maxWaitMs: options.maxWaitMs ?? 60_000 });

it("runs up to its limit at once, the rest in order, and refuses what is over", async () => {
  const gate = gateOf();
  const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const started: number[] = [];
  const work = (index: number) =>
    gate.run(async () => {
      started.push(index);
      await holds[index]?.promise;
      return index;
    });
  const running = [work(0), work(1), work(2)];
  await expect(work(3)).rejects.toMatchObject({ code: "capacity_unavailable" });
  expect(started).toEqual([0, 1]);
  holds[1]?.resolve();
  await running[1];
  await Promise.resolve();
  expect(started).toEqual([0, 1, 2]);
  holds[0]?.resolve();
  holds[2]?.resolve();
  expect(await Promise.all(running)).toEqual([0, 1, 2]);
  expect(gate.isIdle).toBe(true);
});

it("gives a place back when the work fails", async () => {
  const gate = gateOf({ maxWaiting: 0 });
  for (let at = 0; at < 5; at += 1) await expect(gate.run(() => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await gate.run(async () => "fine")).toBe("fine");
});

it("refuses whoever has waited too long, and goes on with the others", async () => {
  const gate = gateOf({ maxWaitMs: 20, maxWaiting: 5 });
  const hold = Promise.withResolvers<void>();
  const running = [gate.run(() => hold.promise), gate.run(() => hold.promise)];
  await expect(gate.run(async () => "late")).rejects.toMatchObject({ code: "capacity_unavailable" });
  hold.resolve();
  await Promise.all(running);
  expect(await gate.run(async () => "in time")).toBe("in time");
});

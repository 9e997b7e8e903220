import { expect, it } from "vitest";
import { StartGate } from "./start-gate.ts";

it("runs up to its limit at once, the rest in order, and refuses what is over", async () => {
  const gate = new StartGate({ limit: 2, maxWaiting: 1 });
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
});

it("gives a place back when the work fails", async () => {
  const gate = new StartGate({ limit: 1, maxWaiting: 0 });
  await expect(gate.run(() => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await gate.run(async () => "fine")).toBe("fine");
});

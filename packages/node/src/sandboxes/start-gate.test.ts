import { expect, it } from "vitest";
import { StartGate } from "./start-gate.ts";

const gateOf = (options: { maxWaiting?: number; maxWaitMs?: number } = {}) =>
  new StartGate({ limit: { min: 1, max: 2 }, maxWaiting: options.maxWaiting ?? 1, maxWaitMs: options.maxWaitMs ?? 60_000 });

it("runs up to its limit at once, the rest in order, and refuses what is over", async () => {
  const gate = gateOf();
  const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const started: number[] = [];
  const work = (index: number) =>
    gate.run("", async () => {
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
  for (let at = 0; at < 5; at += 1) await expect(gate.run("", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await gate.run("", async () => "fine")).toBe("fine");
});

it("refuses whoever has waited too long, and goes on with the others", async () => {
  const gate = gateOf({ maxWaitMs: 20, maxWaiting: 5 });
  const hold = Promise.withResolvers<void>();
  const running = [gate.run("", () => hold.promise), gate.run("", () => hold.promise)];
  await expect(gate.run("", async () => "late")).rejects.toMatchObject({ code: "capacity_unavailable" });
  hold.resolve();
  await Promise.all(running);
  expect(await gate.run("", async () => "in time")).toBe("in time");
});

/** Occupies both places, and queues starts of these groups. `next` ends one start and tells which one began instead. */
async function queued(groups: readonly string[], options: { maxWaiting?: number } = {}) {
  const gate = gateOf({ maxWaiting: 100, ...options });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const starts = ["first", "second", ...groups].map((group, index) =>
    gate
      .run(group, () => {
        begun.push(`${group}${index}`);
        return new Promise<void>((resolve) => ends.push(resolve));
      })
      .then(
        () => "ended",
        (error: { code: string }) => error.code,
      ),
  );
  await Promise.resolve();
  const next = async () => {
    ends.shift()?.();
    const before = begun.length;
    for (let tick = 0; tick < 20 && begun.length === before; tick += 1) await Promise.resolve();
    return begun.at(-1);
  };
  return { gate, begun, starts, next };
}

it("lets groups take turns, so that the burst of one does not delay another", async () => {
  const { next } = await queued(["a", "a", "a", "a", "b", "c", "b"]);
  expect([await next(), await next(), await next(), await next()]).toEqual(["a2", "b6", "c7", "a3"]);
  // One start of `a` and none of `b` is under way.
  expect([await next(), await next(), await next()]).toEqual(["b8", "a4", "a5"]);
});

it("prefers the group with the fewest starts under way", async () => {
  const { gate, next } = await queued(["a", "a", "a"]);
  expect([await next(), await next()]).toEqual(["a2", "a3"]);
  const late = gate.run("b", async () => "b");
  await next();
  expect(await late).toBe("b");
});

it("refuses the newest start of the group that fills the queue, when another group comes", async () => {
  const { gate, starts, begun, next } = await queued(["a", "a", "a"], { maxWaiting: 3 });
  const one = gate.run("b", async () => "b");
  expect(await starts[4]).toBe("capacity_unavailable");
  // `b` would have more starts in the queue than `a` without it.
  await expect(gate.run("b", async () => "b")).rejects.toMatchObject({ code: "capacity_unavailable" });
  await next();
  await next();
  expect(await one).toBe("b");
  expect(begun).not.toContain("a4");
});

import { expect, it } from "vitest";
import { KeyedLock } from "./keyed-lock.ts";

it("runs work with the same key in order, and continues after a failure", async () => {
  const lock = new KeyedLock();
  const events: string[] = [];
  const first = Promise.withResolvers<void>();
  const results = await Promise.all([
    lock
      .run("a", async () => {
        events.push("a1 begins");
        await first.promise;
        events.push("a1 ends");
        throw new Error("broken");
      })
      .catch((error: Error) => error.message),
    lock.run("a", async () => events.push("a2")),
    lock.run("b", async () => {
      events.push("b1");
      first.resolve();
    }),
  ]);
  expect(events).toEqual(["a1 begins", "b1", "a1 ends", "a2"]);
  expect(results[0]).toBe("broken");
});

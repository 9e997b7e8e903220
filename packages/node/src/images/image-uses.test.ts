import { expect, test } from "vitest";
import { ImageUses } from "./image-uses.ts";

const isDone = async (promise: Promise<unknown>) => {
  const pending = Symbol();
  // As many turns as a chain of settled promises may take.
  const later = new Promise((resolve) => setImmediate(() => resolve(pending)));
  return (await Promise.race([promise, later])) !== pending;
};

test("an image is settled when all its uses have ended, also those that began meanwhile, and however they ended", async () => {
  const uses = new ImageUses();
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const used = uses.during("a", first.promise);
  const settled = uses.settled("a");
  expect(await isDone(settled)).toBe(false);
  const failed = expect(uses.during("a", second.promise)).rejects.toThrow("no");
  first.resolve("done");
  expect(await used).toBe("done");
  expect(await isDone(settled)).toBe(false);
  second.reject(new Error("no"));
  await failed;
  expect(await isDone(settled)).toBe(true);
});

test("an image that nothing uses, or that is not used any more, is settled at once", async () => {
  const uses = new ImageUses();
  await uses.during("a", Promise.resolve());
  expect(await isDone(uses.settled("a"))).toBe(true);
  void uses.during("b", new Promise(() => {}));
  expect(await isDone(uses.settled("a"))).toBe(true);
  expect(await isDone(uses.settled("b"))).toBe(false);
});

import { expect, test } from "vitest";
import { untilAborted } from "./until-aborted.ts";

test("waits for the outcome, or until it is no longer wanted", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
  await expect(untilAborted(Promise.reject(new Error("failed")), signal)).rejects.toThrow("failed");
  await expect(untilAborted(new Promise(() => {}), AbortSignal.abort())).rejects.toThrow("the caller went away");
  const leaving = new AbortController();
  const waiting = untilAborted(new Promise(() => {}), leaving.signal);
  leaving.abort();
  await expect(waiting).rejects.toThrow("the caller went away");
});

test("what fails after its caller left is nobody's error", async () => {
  const leaving = new AbortController();
  const late = Promise.withResolvers<void>();
  const waiting = untilAborted(late.promise, leaving.signal);
  leaving.abort();
  await expect(waiting).rejects.toThrow("the caller went away");
  late.reject(new Error("too late"));
});

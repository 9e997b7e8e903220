import { expect, test } from "vitest";
import { untilAborted } from "./until-aborted.ts";

test("settles with the promise, or with the abort", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
  await expect(untilAborted(Promise.reject(new Error("failed")), signal)).rejects.toThrow("failed");
  await expect(untilAborted(new Promise(() => {}), AbortSignal.abort())).rejects.toThrow("the caller went away");
  const leaving = new AbortController();
  const waiting = untilAborted(new Promise(() => {}), leaving.signal);
  leaving.abort();
  await expect(waiting).rejects.toThrow("the caller went away");
});

test("a failure after the abort is not an unhandled rejection", async () => {
  const leaving = new AbortController();
  const late = Promise.withResolvers<void>();
  const waiting = untilAborted(late.promise, leaving.signal);
  leaving.abort();
  await expect(waiting).rejects.toThrow("the caller went away");
  late.reject(new Error("too late"));
});

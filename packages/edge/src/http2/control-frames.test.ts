import { expect, test } from "vitest";
import { ControlFrames } from "./control-frames.ts";

test("a burst passes, and then as many as time permits", () => {
  let now = 0;
  const frames = new ControlFrames(() => now);
  for (let n = 0; n < 100; n++) expect(frames.take()).toBe(true);
  expect(frames.take()).toBe(false);
  now += 100;
  expect([frames.take(), frames.take()]).toEqual([true, false]);
  now += 3_600_000;
  for (let n = 0; n < 100; n++) expect(frames.take()).toBe(true);
  expect(frames.take()).toBe(false);
});

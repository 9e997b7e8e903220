import { expect, test } from "vitest";
import { OpenRequests } from "./open-requests.ts";

test("each key has the same number of places, which requests leave when they are over", () => {
  const open = new OpenRequests(2);
  const [first, second] = [new AbortController(), new AbortController()];
  open.add("a", first.signal);
  expect(open.isFull("a")).toBe(false);
  open.add("a", second.signal);
  expect([open.isFull("a"), open.isFull("b")]).toEqual([true, false]);
  first.abort();
  expect(open.isFull("a")).toBe(false);
});

test("nothing is left of requests that are over, and one that was over before is not counted", () => {
  const open = new OpenRequests(100);
  const over = Array.from({ length: 50 }, () => new AbortController());
  for (const [n, { signal }] of over.entries()) open.add(`${n % 7}`, signal);
  expect(open.size).toBe(7);
  for (const one of over) one.abort();
  expect(open.size).toBe(0);
  open.add("a", AbortSignal.abort());
  expect(open.size).toBe(0);
});

test("0 is no limit", () => {
  const open = new OpenRequests(0);
  for (let n = 0; n < 100; n++) open.add("a", new AbortController().signal);
  expect(open.isFull("a")).toBe(false);
});

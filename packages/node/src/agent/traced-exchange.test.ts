import { expect, it } from "vitest";
import { durationIn } from "./traced-exchange.ts";

it.each([
  ["init;dur=3", 3],
  ["init;dur=0.25", 0.25],
  ["init;dur=-1", undefined],
  ["init;dur=1e9", undefined],
  ["init;dur=99999999", undefined],
  ["init;dur=1, other;dur=2", undefined],
  [undefined, undefined],
])("reads %o as a duration of %o ms", (header, duration) => {
  expect(durationIn(header)).toBe(duration);
});

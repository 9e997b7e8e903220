import { expect, it } from "vitest";
import { inlineDisposition } from "./content-disposition.ts";

it.each([
  [".env", "inline; filename=.env"],
  ["100%.txt", "inline; filename=100%.txt"],
  ["it's.txt", "inline; filename=it's.txt"],
  ["{a}.txt", "inline; filename={a}.txt"],
  ["a b.txt", 'inline; filename="a b.txt"'],
  ['q"uote\\.txt', 'inline; filename="q\\"uote\\\\.txt"'],
  ["a;b,(c)", 'inline; filename="a;b,(c)"'],
  ["文.txt", "inline; filename*=utf-8''%E6%96%87.txt"],
])("carries the name %j", (name, expected) => {
  expect(inlineDisposition(name)).toBe(expected);
});

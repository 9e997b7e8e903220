import fc from "fast-check";
import { expect, test } from "vitest";
import { type KeyPart, keyOf } from "./keys.ts";

const parts = fc.letrec<{ part: KeyPart }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small" },
    fc.string({ unit: "binary" }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("part")),
  ),
})).part;

test("different parts have different keys, equal ones the same", () => {
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      expect(keyOf(a) === keyOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
    }),
  );
});

test("what is joined differently is different", () => {
  expect(keyOf(["a b"])).not.toBe(keyOf(["a", "b"]));
  expect(keyOf("RUN", ["whoami", "root"])).not.toBe(keyOf("RUN", ["whoami root"]));
  expect(keyOf("a", null)).not.toBe(keyOf("a", "null"));
});

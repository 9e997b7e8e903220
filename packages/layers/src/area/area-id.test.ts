import { expect, it } from "vitest";
import { assertAreaId, isAreaId, newAreaId } from "./area-id.ts";

it("makes ids that it takes", () => {
  const id = newAreaId();
  expect(isAreaId(id)).toBe(true);
  assertAreaId(id);
  expect(newAreaId()).not.toBe(id);
});

it.each(["", "a".repeat(23), "A".repeat(24), "../aaaaaaaaaaaaaaaaaaaaa", `${"a".repeat(24)}\n`, `${"a".repeat(24)}.img`])(
  "refuses %j",
  (text) => {
    expect(() => assertAreaId(text)).toThrow(/not a disk area's id/);
  },
);

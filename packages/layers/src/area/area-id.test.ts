import { expect, it } from "vitest";
import { areaIdsOf, newAreaId, parseAreaId } from "./area-id.ts";

it("makes ids that it takes", () => {
  const id = newAreaId();
  expect(parseAreaId(id)).toBe(id);
  expect(newAreaId()).not.toBe(id);
});

it.each(["", "a".repeat(23), "A".repeat(24), "../aaaaaaaaaaaaaaaaaaaaa", `${"a".repeat(24)}\n`, `${"a".repeat(24)}.img`])(
  "refuses %j",
  (text) => {
    expect(() => parseAreaId(text)).toThrow(/not a disk area's id/);
  },
);

it("finds each area once, by its folder, its image or both, and nothing else", () => {
  const [a, b, c] = ["a", "b", "c"].map((letter) => letter.repeat(24));
  expect(areaIdsOf([`${a}`, `${a}.img`, `${b}.img`, `${c}`, ".try-x", "trash", `${a}.img.img`]).sort()).toEqual([a, b, c]);
});

import { expect, it } from "vitest";
import { isSecretId, newSecretId } from "./secret-id.ts";

it("makes ids that sort by time and are never the same", () => {
  const ids = [1, 2, 1_700_000_000_000, 1_900_000_000_000].map(newSecretId);
  for (const id of ids) expect(isSecretId(id)).toBe(true);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(Array.from({ length: 100 }, () => newSecretId(5))).size).toBe(100);
  // The time is in the first ten characters.
  expect(newSecretId(1_700_000_000_000).slice(0, 14)).toMatch(/^sec_01hf7yat00$/);
});

it.each(["", "sec_", "sec_x", `sec_8${"0".repeat(25)}`, `sec_${"0".repeat(27)}`, `SEC_${"0".repeat(26)}`, `sec_${"u".repeat(26)}`])(
  "refuses %j",
  (text) => {
    expect(isSecretId(text)).toBe(false);
  },
);

import { expect, test } from "vitest";
import { UnaskedEnds } from "./unasked-ends.ts";

test("tells the first reason of each, for ten minutes, until it runs again", () => {
  const ends = new UnaskedEnds();
  ends.add("a", "memory", 0);
  ends.add("a", "exited", 1);
  ends.add("b", "exited", 300_000);
  ends.add("", "exited", 300_000);
  expect(ends.list(300_000)).toEqual([
    { sandboxId: "a", reason: "memory" },
    { sandboxId: "b", reason: "exited" },
  ]);
  expect(ends.list(600_000)).toEqual([{ sandboxId: "b", reason: "exited" }]);
  ends.delete("b");
  expect(ends.list(600_000)).toEqual([]);
});

test("keeps the latest when there are too many", () => {
  const ends = new UnaskedEnds();
  for (let i = 0; i < 10_500; i++) ends.add(`i${i}`, "exited", i);
  expect(ends.list(10_500)).toHaveLength(10_000);
  expect(ends.list(10_500).at(-1)?.sandboxId).toBe("i10499");
});

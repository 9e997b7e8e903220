import { expect, it } from "vitest";
import { placeSandbox } from "./placement.ts";

const nodes = (...counts: [string, number][]) => counts.map(([nodeId, sandboxCount]) => ({ nodeId, sandboxCount }));

it("picks the node with the fewest sandboxes", () => {
  expect(placeSandbox(nodes(["a", 3], ["b", 1], ["c", 2]))?.nodeId).toBe("b");
});

it("picks the first by id among equals", () => {
  expect(placeSandbox(nodes(["c", 1], ["a", 1], ["b", 1]))?.nodeId).toBe("a");
});

it("picks none where there is none", () => {
  expect(placeSandbox([])).toBeUndefined();
});

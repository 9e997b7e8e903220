import type { BuildEntry } from "@skerry/store";
import { expect, it } from "vitest";
import { nextTurns } from "./build-turns.ts";

/** "a1": a queued build of team a. "a1@n": it runs on node n. */
function builds(...texts: string[]): BuildEntry[] {
  return texts.map((text) => {
    const [id = "", nodeId] = text.split("@");
    return { id, teamId: id.slice(0, 1), nodeId } as unknown as BuildEntry;
  });
}

function turns(
  all: BuildEntry[],
  options: { nodeIds?: string[]; lastBegan?: Record<string, number>; nodeOf?: Record<string, string>; atOnce?: number } = {},
) {
  const { nodeIds = ["n"], lastBegan = {}, nodeOf = {}, atOnce = 2 } = options;
  const facts = { builds: all, nodeIds, atOnce, lastBegan: new Map(Object.entries(lastBegan)), nodeOf: ({ id }: BuildEntry) => nodeOf[id] };
  return nextTurns(facts).map(({ build, nodeId }) => `${build.id}@${nodeId}`);
}

it("gives the next place to the team with the fewest builds", () => {
  expect(turns(builds("a1@n", "a2", "a3", "b1"))).toEqual(["b1@n"]);
  expect(turns(builds("a1", "a2", "b1"))).toEqual(["a1@n", "b1@n"]);
});

it("gives it to the team that has waited longest, among equal ones", () => {
  expect(turns(builds("a2", "a3", "b1"), { lastBegan: { a: 5 }, atOnce: 1 })).toEqual(["b1@n"]);
  expect(turns(builds("a2", "b2"), { lastBegan: { a: 5, b: 9 }, atOnce: 1 })).toEqual(["a2@n"]);
});

it("keeps the order of a team's builds, and fills every place", () => {
  expect(turns(builds("a1", "a2", "a3"), { nodeIds: ["n", "m"], atOnce: 1 })).toEqual(["a1@n", "a2@m"]);
  expect(turns(builds("a1@n", "a2@n", "a3"))).toEqual([]);
  expect(turns(builds("a1@gone", "a2"))).toEqual(["a2@n"]);
});

it("passes over a build whose only node is full or away", () => {
  const all = builds("a1@n", "b1", "c1");
  expect(turns(all, { nodeIds: ["n", "m"], nodeOf: { b1: "n" }, atOnce: 1 })).toEqual(["c1@m"]);
  expect(turns(all, { nodeIds: ["m"], nodeOf: { b1: "n" }, atOnce: 1 })).toEqual(["c1@m"]);
});

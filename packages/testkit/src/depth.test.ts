import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestRun } from "@skerry/test-runner/test-run";
import { afterEach, beforeEach, expect, test } from "vitest";
import { databasesFor, runtimesFor, sampleOf, scaled, testDepth } from "./depth.ts";

const before = { ...process.env };
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "skerry-depth-"));
  process.env.SKERRY_TEST_RUN = dir;
  delete process.env.SKERRY_TEST_DEPTH;
});
afterEach(() => {
  for (const name of ["SKERRY_TEST_RUN", "SKERRY_TEST_DEPTH"] as const) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  rmSync(dir, { recursive: true });
});
const leftOut = () => new TestRun(dir).readLeftOut();

test("a sample covers a part of each matrix, and records what it leaves out", () => {
  expect(scaled("steps", { sample: 2, full: 10 })).toBe(2);
  expect(sampleOf("pairs", ["a", "b", "c"], (one) => one !== "b")).toEqual(["a", "c"]);
  expect([runtimesFor("files"), runtimesFor("walls", "runc"), databasesFor("lists", "postgres")]).toEqual([
    ["gvisor"],
    ["runc"],
    ["postgres"],
  ]);
  expect(leftOut()).toEqual([
    { what: "steps", ran: 2, of: 10 },
    { what: "pairs", ran: 2, of: 3 },
    { what: "runtimes", suite: "files", ran: 1, of: 2 },
    { what: "runtimes", suite: "walls", ran: 1, of: 2 },
    { what: "databases", suite: "lists", ran: 1, of: 2 },
  ]);
});

test("a full run covers all cases", () => {
  process.env.SKERRY_TEST_DEPTH = "full";
  expect(scaled("steps", { sample: 2, full: 10 })).toBe(10);
  expect(sampleOf("pairs", ["a", "b", "c"], () => false)).toEqual(["a", "b", "c"]);
  expect(runtimesFor("files")).toEqual(["gvisor", "runc"]);
  expect(leftOut()).toEqual([]);
});

test("throws for an empty sample and for an unknown depth", () => {
  expect(() => sampleOf("pairs", ["a"], () => false)).toThrow(/no case of "pairs"/);
  process.env.SKERRY_TEST_DEPTH = "deep";
  expect(() => testDepth()).toThrow(/"sample" or "full", not "deep"/);
});

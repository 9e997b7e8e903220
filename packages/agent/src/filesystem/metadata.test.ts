import { expect, it } from "vitest";
import { metadataOf, metadataProblem } from "./metadata.ts";

it("takes the first of repeated headers and drops empty names", () => {
  const raw = ["Host", "x", "X-Metadata-Colour", "red", "x-metadata-colour", "blue", "X-Metadata-", "none", "X-METADATA-Empty", ""];
  expect(metadataOf(raw)).toEqual({ colour: "red", empty: "" });
});

it("takes names that every object has", () => {
  const metadata = metadataOf(["X-Metadata-Constructor", "c", "X-Metadata-__proto__", "p"]);
  expect(Object.entries(metadata)).toEqual([
    ["constructor", "c"],
    ["__proto__", "p"],
  ]);
});

it.each([
  [{ a: "b" }, undefined],
  [{ a: "é" }, /invalid metadata: the value of "a"/],
  [{ ["k".repeat(247)]: "" }, /longer than 246 bytes/],
  [{ a: "v".repeat(4096) }, /more than 4096/],
])("checks it", (metadata, expected) => {
  const problem = metadataProblem(metadata);
  if (expected === undefined) expect(problem).toBeUndefined();
  else expect(problem).toMatch(expected);
});

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
  [{ a: "~ \x7f" }, /invalid metadata: the value of "a"/],
  [{ ä: "b" }, /invalid metadata: key "ä"/],
  [{ ["k".repeat(246)]: "" }, undefined],
  [{ ["k".repeat(247)]: "" }, /exceeds 246 bytes/],
  // "user.e2b.", the key and the value: 9 + 1 + 4086, or both of 9 + 1 + 2038.
  [{ a: "v".repeat(4086) }, undefined],
  [{ a: "v".repeat(4087) }, /4097 bytes exceed the limit of 4096/],
  [{ a: "v".repeat(2038), b: "v".repeat(2038) }, undefined],
  [{ a: "v".repeat(2038), b: "v".repeat(2039) }, /4097 bytes exceed the limit of 4096/],
])("checks it", (metadata, expected) => {
  const problem = metadataProblem(metadata);
  if (expected === undefined) expect(problem).toBeUndefined();
  else expect(problem).toMatch(expected);
});

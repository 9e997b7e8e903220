import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRanges } from "./ranges.ts";

describe("parseRanges", () => {
  it.each([
    [undefined, 11, { kind: "whole" }],
    ["bytes=0-4", 11, { kind: "parts", ranges: [{ start: 0, end: 5 }] }],
    ["bytes=-3", 11, { kind: "parts", ranges: [{ start: 8, end: 11 }] }],
    ["bytes=5-", 11, { kind: "parts", ranges: [{ start: 5, end: 11 }] }],
    ["bytes=0-100", 11, { kind: "parts", ranges: [{ start: 0, end: 11 }] }],
    [
      "bytes=0-0, 2-3",
      11,
      {
        kind: "parts",
        ranges: [
          { start: 0, end: 1 },
          { start: 2, end: 4 },
        ],
      },
    ],
    ["bytes=20-30", 11, { kind: "unsatisfiable" }],
    ["bytes=20-30,0-1", 11, { kind: "parts", ranges: [{ start: 0, end: 2 }] }],
    ["bytes=0-10,0-10", 11, { kind: "whole" }],
    ["bytes=0-4", 0, { kind: "whole" }],
    ["bytes=4-2", 11, { kind: "malformed" }],
    ["bytes=a-b", 11, { kind: "malformed" }],
    ["items=0-4", 11, { kind: "malformed" }],
  ])("reads %j of %i bytes", (header, size, expected) => {
    expect(parseRanges(header, size)).toEqual(expected);
  });

  it("never gives a part outside the file", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(1000), (text, size) => {
        const result = parseRanges(`bytes=${text}`, size);
        if (result.kind !== "parts") return true;
        return result.ranges.every((range) => range.start >= 0 && range.start < range.end && range.end <= size);
      }),
    );
  });
});

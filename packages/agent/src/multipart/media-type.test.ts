import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseMediaType } from "./media-type.ts";

function parameters(header: string): Record<string, string> | undefined {
  const parsed = parseMediaType(header);
  return parsed && Object.fromEntries(parsed.parameters);
}

describe("parseMediaType", () => {
  it.each([
    ["form-data; name=file", { name: "file" }],
    ['form-data; name="file"; filename="dir/文.txt"', { name: "file", filename: "dir/文.txt" }],
    ['form-data; filename="a\\"b\\\\c"', { filename: 'a"b\\c' }],
    ['form-data; filename="C:\\dev\\x"', { filename: "C:\\dev\\x" }],
    ['form-data; filename="100%22"', { filename: "100%22" }],
    ["form-data; filename=plain; filename*=utf-8''%E6%96%87.txt", { filename: "文.txt" }],
    ["form-data; Name=x ;", { name: "x" }],
    ["form-data", {}],
  ])("reads %s", (header, expected) => {
    expect(parameters(header)).toEqual(expected);
  });

  it.each(["", "; a=b", "x; a", 'x; a="open', "x; =b"])("refuses %j", (header) => {
    expect(parseMediaType(header)).toBeUndefined();
  });

  it("reads back what a client quotes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const quoted = name.replace(/[\r\n]/g, "").replace(/["\\]/g, "\\$&");
        expect(parameters(`form-data; filename="${quoted}"`)).toEqual({ filename: name.replace(/[\r\n]/g, "") });
      }),
    );
  });
});

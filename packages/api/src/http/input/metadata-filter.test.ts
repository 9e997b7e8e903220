import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseMetadataFilter } from "./metadata-filter.ts";

/** The first two encodings, as the official clients apply them. */
function encode(pairs: Readonly<Record<string, string>>): string {
  const form = new URLSearchParams();
  for (const [key, value] of Object.entries(pairs)) form.append(encodeURIComponent(key), encodeURIComponent(value));
  return form.toString();
}

const text = fc.string({ unit: "binary" }).filter((value) => !value.includes("\0"));
const plainObject = (pairs: object) => Object.assign({}, pairs);

describe("parseMetadataFilter", () => {
  it("reads back whatever clients encode", () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          text.filter((key) => key !== "__proto__"),
          text,
          { minKeys: 1, maxKeys: 64 },
        ),
        (pairs) => {
          expect(parseMetadataFilter(encode(pairs))).toEqual(plainObject(pairs));
        },
      ),
    );
  });

  it("reads filters that people write", () => {
    expect(parseMetadataFilter("user=abc&app=x+y")).toEqual({ user: "abc", app: "x y" });
    expect(parseMetadataFilter("")).toEqual({});
  });

  it("takes 64 pairs and no more", () => {
    const pairs = (count: number) => Array.from({ length: count }, (_, i) => `n${i}=v`).join("&");
    expect(Object.keys(parseMetadataFilter(pairs(64)))).toHaveLength(64);
    expect(() => parseMetadataFilter(pairs(65))).toThrow(/^Error parsing metadata: there may be at most 64 pairs/);
  });

  it.each(["a", "a=b=c", "a=b&", "&", "a=%", "%ff=1", "a=%2500"])("refuses %j", (bad) => {
    expect(() => parseMetadataFilter(bad)).toThrow(/^Error parsing metadata/);
  });
});

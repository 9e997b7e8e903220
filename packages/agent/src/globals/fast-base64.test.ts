import fc from "fast-check";
import { expect, it } from "vitest";
import { setFromBase64, toBase64 } from "./fast-base64.ts";

it("writes what Buffer writes, with and without padding, in both alphabets", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const standard = Buffer.from(bytes).toString("base64");
      expect(toBase64(bytes)).toBe(standard);
      expect(toBase64(bytes, { omitPadding: true })).toBe(standard.replace(/=+$/, ""));
      expect(toBase64(bytes, { alphabet: "base64url" })).toBe(standard.replaceAll("+", "-").replaceAll("/", "_"));
      const target = new Uint8Array(bytes.length);
      expect(setFromBase64(target, standard)).toEqual({ read: standard.length, written: bytes.length });
      expect(target).toEqual(bytes);
    }),
  );
});

it("writes only the part of a buffer that a view shows", () => {
  expect(toBase64(new Uint8Array([0, 104, 105, 0]).subarray(1, 3))).toBe("aGk=");
});

it.each(["a", "ab", "abc", "ab=c", "ab==cd==", "a b=", "ab-_", "\u0000AAA", "AAA\n"])(
  "refuses %j, for the lenient reader to decide",
  (text) => {
    expect(() => setFromBase64(new Uint8Array(16), text)).toThrow(SyntaxError);
  },
);

it("refuses what does not fit", () => {
  expect(() => setFromBase64(new Uint8Array(1), "aGk=")).toThrow(SyntaxError);
});

import { expect, test } from "vitest";
import { parseExpiration, signatureDigest, signedText } from "./file-signature.ts";

test("what is signed, with and without an expiration", () => {
  const request = { path: "a b/ü", operation: "read", username: "", expiration: undefined } as const;
  expect(signedText(request, "token")).toBe("a b/ü:read::token");
  expect(signedText({ ...request, operation: "write", username: "root", expiration: 17 }, "token")).toBe("a b/ü:write:root:token:17");
});

test("the digest of a signature that a client made", () => {
  expect(signatureDigest("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E")).toBe("gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
});

test("the last character holds four bits of the digest", () => {
  const digits = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"];
  const accepted = digits.filter((last) => signatureDigest(`v1_${"A".repeat(42)}${last}`) !== undefined);
  expect(accepted).toEqual(digits.filter((_, value) => value % 4 === 0));
});

test.each([
  "",
  "v1_",
  "v2_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
  "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6",
  "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E=",
  "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6F",
  "v1_gUtH_s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
  "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6 E",
  "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E\n",
])("%j is no signature", (text) => {
  expect(signatureDigest(text)).toBeUndefined();
});

test("an expiration is a whole number", () => {
  expect(["0", "17", "-5", "+5", "1792000000"].map(parseExpiration)).toEqual([0, 17, -5, 5, 1_792_000_000]);
  expect(["", " 1", "1.5", "1e3", "0x1", "99999999999999999999", "abc"].map(parseExpiration)).toEqual(Array(7).fill(undefined));
});

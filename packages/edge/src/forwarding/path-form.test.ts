import { expect, test } from "vitest";
import { FOR_THE_ORIGIN, responseForPath } from "./path-form.ts";

const PREFIX = "/s/ia/3000";
const VIEW = { prefix: PREFIX, host: "localhost:3000" };
const POLICY = ["Content-Security-Policy", "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"];

test.each([
  ["/", `${PREFIX}/`],
  ["/login?next=/a", `${PREFIX}/login?next=/a`],
  [`${PREFIX}/login`, `${PREFIX}/login`],
  [PREFIX, PREFIX],
  [`${PREFIX}?a`, `${PREFIX}?a`],
  [`${PREFIX}1/login`, `${PREFIX}${PREFIX}1/login`],
  ["http://localhost:3000/a?b#c", `${PREFIX}/a?b#c`],
  ["HTTPS://LocalHost:3000", `${PREFIX}/`],
  ["http://localhost:3001/a", "http://localhost:3001/a"],
  ["https://example.com/a", "https://example.com/a"],
  ["//example.com/a", "//example.com/a"],
  ["/\\example.com/a", "/\\example.com/a"],
  ["http://[", "http://["],
  ["login", "login"],
  ["?a", "?a"],
  ["../a", "../a"],
  ["", ""],
])("the Location %s becomes %s", (before, after) => {
  expect(responseForPath(["Location", before], VIEW)).toEqual(["Location", after, ...POLICY]);
});

test.each([
  ["a=b", "a=b"],
  ["a=b; Path=/", `a=b; Path=${PREFIX}/`],
  ["a=/; path=/x; HttpOnly", `a=/; path=${PREFIX}/x; HttpOnly`],
  [`a=b;PATH = ${PREFIX}/x ;Secure`, `a=b;PATH = ${PREFIX}/x;Secure`],
  ["a=b; Path=/s/ib/80/", `a=b; Path=${PREFIX}/s/ib/80/`],
  ["a=b; Path=/x; Path=/", `a=b; Path=${PREFIX}/x; Path=${PREFIX}/`],
  ['a=b; Path="/"', `a=b; Path="${PREFIX}/"`],
  ["a=b; Path=", "a=b; Path="],
  ["a=b; Path=x", "a=b; Path=x"],
  ["Path=/; Path=/", `Path=/; Path=${PREFIX}/`],
])("the cookie %s becomes %s", (before, after) => {
  expect(responseForPath(["Set-Cookie", before], VIEW)).toEqual(["Set-Cookie", after, ...POLICY]);
});

test("the policy is added to those of the application, and what concerns the whole origin is removed", () => {
  const raw = ["Content-Security-Policy", "default-src 'self'", "content-security-policy", "sandbox allow-same-origin"];
  const removed = [...FOR_THE_ORIGIN.keys()].flatMap((name) => [name.toUpperCase(), "x"]);
  expect(responseForPath([...raw, ...removed, "ETag", "x"], VIEW)).toEqual([...raw, "ETag", "x", ...POLICY]);
});

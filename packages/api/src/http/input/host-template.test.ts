import fc from "fast-check";
import { expect, test } from "vitest";
import { hostTemplateProblem } from "./host-template.ts";

test.each([
  "localhost",
  "localhost:3000",
  "localhost:${PORT}",
  "${PORT}.example.com",
  "app-${PORT}.Example.com:8080",
  "127.0.0.1:${PORT}",
  "[::1]:${PORT}",
  "my_app",
  `${"a".repeat(63)}.example`,
])("%s is a host", (template) => {
  expect(hostTemplateProblem(template)).toBeUndefined();
});

test.each([
  "",
  " localhost",
  "localhost ",
  "localhost\r\nX-Evil: 1",
  "localhost\n",
  "a/b",
  "user@host",
  "http://localhost",
  "localhost:",
  "localhost:0",
  "localhost:080",
  "localhost:65536",
  "localhost:1${PORT}",
  "localhost:3000:3000",
  "${PORT",
  "${port}",
  "$PORT",
  "-a.example",
  "a-.example",
  "a..b",
  ".",
  "example.com.",
  "::1",
  "[::1",
  "[localhost]",
  "[::1]x",
  "[fe80::1%eth0]",
  "häuser.example",
  "a\0b",
  `${"a".repeat(64)}.example`,
  "a.".repeat(200),
])("%j is not", (template) => {
  expect(hostTemplateProblem(template)).toEqual(expect.any(String));
});

test("what is accepted is a field value of one line for every port", () => {
  const template = fc.array(fc.constantFrom("a", ".", ":", "${PORT}", "80", "[", "]", "\r", "\n", " ", "-", "é"), { maxLength: 8 });
  fc.assert(
    fc.property(template, fc.integer({ min: 1, max: 65535 }), (parts, port) => {
      if (hostTemplateProblem(parts.join("")) !== undefined) return;
      const host = parts.join("").replaceAll("${PORT}", String(port));
      expect(new URL(`http://${host}/`).pathname).toBe("/");
      expect(host).toMatch(/^[\x21-\x7e]+$/);
    }),
    { numRuns: 2_000 },
  );
});

import { expect, test } from "vitest";
import { hostName, NameRules } from "./names.ts";

test.each([
  ["Example.COM", "example.com"],
  ["example.com.", "example.com"],
  ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["_dns.example.com", "_dns.example.com"],
  ["localhost", "localhost"],
])("%s is the name %s", (text, name) => {
  expect(hostName(text)).toBe(name);
});

test.each([
  "",
  ".",
  "a..b",
  "192.0.2.1",
  "192.0.2.1.",
  "1",
  "0x7f.1",
  "127.0x1",
  "[::1]",
  "::1",
  "a b.example",
  "-a.example",
  "a-.example",
  "example.com\0.evil.example",
  "bücher.example",
  "*.example.com",
  `${"a".repeat(64)}.example`,
  `${"a.".repeat(127)}example`,
])("%j is no name", (text) => {
  expect(hostName(text)).toBeUndefined();
});

test("a wildcard matches names at any depth below its own, and not its own", () => {
  const rules = new NameRules(["*.Example.com", "api.example.org", "*.deep.example.com"]);
  expect(rules.find("a.example.com")).toBe("*.Example.com");
  expect(rules.find("a.b.example.com")).toBe("*.Example.com");
  expect(rules.find("x.deep.example.com")).toBe("*.deep.example.com");
  expect(rules.find("api.example.org")).toBe("api.example.org");
  for (const other of ["example.com", "badexample.com", "example.com.evil.example", "x.api.example.org", "example.org"]) {
    expect(rules.find(other), other).toBeUndefined();
  }
});

test("a single star matches every name, after more precise rules", () => {
  const rules = new NameRules(["*", "a.example"]);
  expect(rules.find("a.example")).toBe("a.example");
  expect(rules.find("b.example")).toBe("*");
});

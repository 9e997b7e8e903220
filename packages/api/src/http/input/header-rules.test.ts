import { expect, it } from "vitest";
import { encodeHeaderRules, headerRulesFrom } from "./header-rules.ts";

const rule = (headers: Record<string, string> = { A: "b" }) => [{ transform: { headers } }];

it("reads rules, and shows them as they were given", () => {
  const given = { "API.example.com": rule({ Authorization: `Bearer \${e2b.secrets.My_Token}` }), "*.com": rule(), "b.example.com": [] };
  const rules = headerRulesFrom(given);
  expect(rules.map(({ host }) => host)).toEqual(["api.example.com", "*.com", "b.example.com"]);
  expect(encodeHeaderRules(rules)).toEqual({
    "api.example.com": given["API.example.com"],
    "*.com": rule(),
    "b.example.com": [],
  });
  expect(headerRulesFrom({ "a.example.com": [{}], "c.example.com": [{ transform: {} }] }).map(({ headers }) => headers)).toEqual([{}, {}]);
});

it.each([
  [{ "*": rule() }, /no host name/],
  [{ "": rule() }, /no host name/],
  [{ "*.*.example.com": rule() }, /no host name/],
  [{ "a*.example.com": rule() }, /no host name/],
  [{ "1.2.3.4": rule() }, /no host name/],
  [{ "a.example.com:443": rule() }, /no host name/],
  [{ "a.example.com.": rule() }, /no host name/],
  [{ [`${"a".repeat(60)}.${"b".repeat(60)}.example`]: rule() }, /no host name/],
  [{ "a.example.com": rule(), "A.example.com": rule() }, /twice/],
  [{ "a.example.com": [...rule(), ...rule()] }, /at most one rule/],
  [Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`a${i}.example.com`, rule()])), /at most 10 hosts/],
  [{ "a.example.com": rule(Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`x${i}`, "a"]))) }, /at most 20 headers/],
  [{ "a.example.com": rule({ A: "1", a: "2" }) }, /twice/],
  [{ "a.example.com": rule({ "bad name": "1" }) }, /no valid name/],
  [{ "a.example.com": rule({ ["x".repeat(65)]: "1" }) }, /no valid name/],
  [{ "a.example.com": rule({ Host: "evil" }) }, /cannot be set/],
  [{ "a.example.com": rule({ "Transfer-Encoding": "chunked" }) }, /cannot be set/],
  [{ "a.example.com": rule({ A: "x".repeat(2049) }) }, /at most 2048/],
  [{ "a.example.com": rule({ A: "x\r\nB: c" }) }, /no header can have/],
  [{ "a.example.com": rule({ A: `\${e2b.secrets.a b}` }) }, /impossible name/],
  [{ "a.example.com": rule({ A: `\${e2b.secrets.}` }) }, /impossible name/],
  [{ "a.example.com": rule({ A: `\${e2b.secrets.a` }) }, /malformed placeholder/],
  [{ "a.example.com": rule({ A: `\${e2b.other.a}` }) }, /malformed placeholder/],
  [{ "a.example.com": rule({ A: `\${e2b.identity.tokens.aws}` }) }, /workload token/],
])("refuses %j", (given, why) => {
  expect(() => headerRulesFrom(given)).toThrow(why);
});

it("bounds the number of secrets, and repeats no value in a refusal", () => {
  const many = (from: number) => Array.from({ length: 20 }, (_, i) => `\${e2b.secrets.s${from + i}}`).join(" ");
  const refusal = /at most 32 secrets/;
  expect(() => headerRulesFrom({ "a.example.com": rule({ A: many(0), B: many(10) }) })).not.toThrow();
  expect(() => headerRulesFrom({ "a.example.com": rule({ A: many(0), B: many(20) }) })).toThrow(refusal);
  expect(() => headerRulesFrom({ "a.example.com": rule({ A: "s3cret\n" }) })).not.toThrow(/s3cret/);
});

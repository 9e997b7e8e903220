import { expect, it } from "vitest";
import { filledIn, placeholdersIn, ruleForHost } from "./header-rules.ts";

const RULES = ["*.example.com", "*.a.example.com", "b.a.example.com", "example.org", "*.com"].map((host) => ({ host }));

it.each([
  ["x.example.com", "*.example.com"],
  ["X.Y.Example.COM", "*.example.com"],
  ["x.a.example.com", "*.a.example.com"],
  ["a.example.com", "*.example.com"],
  ["b.a.example.com", "b.a.example.com"],
  ["b.a.example.com.", "b.a.example.com"],
  ["example.com", "*.com"],
  ["com", undefined],
  ["xexample.com", "*.com"],
  ["example.org", "example.org"],
  ["x.example.org", undefined],
])("the rule for %s is that of %s", (host, expected) => {
  expect(ruleForHost(RULES, host)?.host).toBe(expected);
});

it("finds placeholders, and what only begins like one", () => {
  expect(placeholdersIn(`Bearer \${e2b.secrets.My-Token} \${x} \${e2b.identity.tokens.aws}`)).toEqual([
    { kind: "secret", name: "My-Token" },
    { kind: "token", name: "aws" },
  ]);
  expect(placeholdersIn("$e2b.secrets.a {e2b.secrets.a}")).toEqual([]);
  for (const wrong of [`\${e2b.`, `\${e2b.secrets.a`, `\${e2b.secret.a}`, `\${e2b.secrets.\${e2b.secrets.a}}`]) {
    expect(placeholdersIn(wrong), wrong).toBeUndefined();
  }
});

it("fills placeholders in, once: a value is no template", () => {
  const values = new Map([
    ["a", `\${e2b.secrets.b} $& $1`],
    ["b", "two"],
  ]);
  expect(filledIn(`<\${e2b.secrets.a}|\${e2b.secrets.b}>`, ({ name }) => values.get(name))).toBe(`<\${e2b.secrets.b} $& $1|two>`);
  expect(filledIn(`\${e2b.secrets.c}`, ({ name }) => values.get(name))).toBeUndefined();
});

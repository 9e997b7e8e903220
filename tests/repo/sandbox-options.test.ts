import { SandboxOptionsSchema } from "@skerry/wire/node";
import { expect, test } from "vitest";
import { codeSpan, isTest, isTypeScript, readText, repositoryFiles, tableRows } from "./repository.ts";

/** These name options of earlier versions, which they convert. */
const CONVERTERS = /^packages\/(store\/src\/migrations|node\/src\/records)\//;
/** By hand: schema, public names, the module that acts on the option, a test, a document. */
const MAX_SOURCES = 3;

const sources = repositoryFiles()
  .filter((path) => (isTypeScript(path) && !isTest(path)) || path.endsWith(".proto"))
  .filter((path) => !CONVERTERS.test(path));
const naming = (words: RegExp, paths = sources) => paths.filter((path) => words.test(readText(path))).toSorted();

const documented = new Map(
  tableRows("docs/sandbox-options.md")
    .filter(([, , files]) => files?.startsWith("`spec/node/node.proto`"))
    .map(([option, , files = ""]) => [codeSpan(option), files.split(", ").map(codeSpan)]),
);

test("docs/sandbox-options.md lists every option", () => {
  expect([...documented.keys()].toSorted()).toEqual(SandboxOptionsSchema.fields.map(({ name }) => name).toSorted());
});

test.each(SandboxOptionsSchema.fields)("the option $name is named only where it is chosen, shown and acted on", ({ name, jsonName }) => {
  const files = naming(new RegExp(`\\b(${name}|${jsonName})\\b`));
  expect(files).toEqual(documented.get(name)?.toSorted());
  expect(files.length).toBeLessThanOrEqual(MAX_SOURCES);
});

test("only the network policy changes what a sandbox may reach", () => {
  const node = sources.filter((path) => path.startsWith("packages/node/src/"));
  expect(naming(/\b(applyFirewall|restrictTraffic|unrestrictTraffic|forgetConnections)\b/, node)).toEqual([
    "packages/node/src/network/network-policy.ts",
  ]);
});

test("only the limits of teams know their values", () => {
  const api = sources.filter((path) => path.startsWith("packages/api/src/"));
  expect(naming(/\b(timeoutHours|sandboxMemoryMb)\b/, api)).toEqual([
    "packages/api/src/teams/limits.ts",
    "packages/api/src/teams/team-limits.ts",
  ]);
});

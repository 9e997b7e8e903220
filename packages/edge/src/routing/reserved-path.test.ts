import { AGENT_PORT, AGENT_RESERVED_PATHS, parseTarget, type Target } from "@skerry/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isReservedPath } from "./reserved-path.ts";

function targetOf(port: number): Target {
  const result = parseTarget(`${port}-iabc.example.com`, { sandboxId: undefined, port: undefined });
  if (result.kind !== "target") throw new Error(result.message);
  return result.target;
}

test.each([
  "/init",
  "/relieve",
  "/generation",
  "/init/",
  "/init?x=1",
  "/init#x",
  "/init;x=1",
  "//init",
  "///init//",
  "/./init",
  "/init/.",
  "/a/../init",
  "/a/%2e%2e/init",
  "/../init",
  "/%69nit",
  "/%69%6E%69%74",
  "/%2569nit",
  "/%252569nit",
  "/%2finit",
  "/x%2f..%2finit",
  "/INIT",
  "/\\init",
  "/%5cinit",
  "/%zz/../init",
  "/%20init",
  "/fsthaw",
])("%s is reserved on the agent's port only", (path) => {
  expect(isReservedPath(targetOf(AGENT_PORT), path)).toBe(true);
  expect(isReservedPath(targetOf(3000), path)).toBe(false);
});

test.each([
  "/",
  "*",
  "/health",
  "/files?path=/init",
  "/files?path=%2Finit",
  "/init/x",
  "/x/init",
  "/initial",
  "/process.Process/Start",
  "/files?path=/100%25",
])("%s is not", (path) => {
  expect(isReservedPath(targetOf(AGENT_PORT), path)).toBe(false);
});

test("no way of writing the segments and escapes of a reserved path gets through", () => {
  const noise = fc
    .array(fc.constantFrom("/", "/.", "//", "/x/..", "/%2e", "/y/%2E%2e", "/%2f"), { maxLength: 4 })
    .map((all) => all.join(""));
  const percentEncode = (text: string, mask: number) =>
    [...text].map((char, at) => ((mask >> at) & 1 ? `%${char.charCodeAt(0).toString(16)}` : char)).join("");
  fc.assert(
    fc.property(fc.constantFrom(...AGENT_RESERVED_PATHS), fc.nat(1023), noise, noise, (path, mask, before, after) => {
      expect(isReservedPath(targetOf(AGENT_PORT), `${before}/${percentEncode(path.slice(1), mask)}${after}`)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

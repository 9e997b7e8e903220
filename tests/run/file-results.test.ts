// Runs the reporter in a real Vitest, over files with every kind of result.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { type FileResult, TestRun } from "@skerry/test-runner/test-run";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const FILES: Readonly<Record<string, string>> = {
  "passes.test.ts": `test("one", () => {}); describe("inner", () => test("two", () => {}));`,
  "fails.test.ts": `test("one", () => {}); test("two", () => { throw new Error("wrong"); });`,
  "skips.test.ts": `test("one", () => {}); test.skip("two", () => {}); test.todo("three");`,
  "unloadable.test.ts": `import "./not-there.ts"; test("one", () => {});`,
  "hook.test.ts": `beforeAll(() => { throw new Error("no database"); }); test("one", () => {});`,
  "teardown.test.ts": `afterAll(() => { throw new Error("something is left"); }); test("one", () => {});`,
  "empty.test.ts": "",
};

// Inside the repository, so that imports resolve.
const dir = mkdtempSync(join(ROOT, "node_modules/.skerry-file-results-"));
const results = new Map<string, FileResult>();
beforeAll(async () => {
  mkdirSync(join(dir, "files"));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(dir, "files", name), text);
  const config = `import { FileResults } from "${ROOT}/tests/run/file-results.ts";
export default { test: { globals: true, include: ["files/*.test.ts"], exclude: [], reporters: [new FileResults("${dir}/run")] } };`;
  writeFileSync(join(dir, "vitest.config.ts"), config);
  const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--root", dir];
  await expect(runCommand(process.execPath, vitest, { timeoutMs: 180_000 })).rejects.toMatchObject({ exitCode: 1 });
  for (const result of new TestRun(join(dir, "run")).readResults()) results.set(result.file.replace("files/", ""), result);
});
afterAll(() => rmSync(dir, { recursive: true }));

test("every file is reported with its duration", () => {
  expect([...results.keys()].sort()).toEqual(Object.keys(FILES).sort());
  for (const { seconds } of results.values()) expect(seconds).toBeGreaterThanOrEqual(0);
});

test.each<[string, number, unknown[]]>([
  ["passes.test.ts", 2, []],
  ["fails.test.ts", 1, ["two"]],
  ["skips.test.ts", 1, ["two (skipped)", "three (skipped)"]],
  ["unloadable.test.ts", 0, [expect.stringContaining("not-there.ts")]],
  ["hook.test.ts", 0, ["one (skipped)"]],
  ["teardown.test.ts", 1, [expect.stringContaining("something is left")]],
  ["empty.test.ts", 0, [expect.any(String)]],
])("%s: %i passed", (name, passed, failures) => {
  expect(results.get(name)).toMatchObject({ passed, failures });
});

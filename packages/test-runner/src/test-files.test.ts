import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { filesOfPart, listTestFiles, slowestFirst } from "./test-files.ts";

const REPO_ROOT = join(import.meta.dirname, "../../..");
const DURATIONS = { "tests/e2e/slow.test.ts": 90, "packages/api/test/middle.test.ts": 30 };
const FILES = ["packages/base/src/a.test.ts", "packages/api/test/middle.test.ts", "tests/e2e/new.test.ts", "tests/e2e/slow.test.ts"];

test("files start longest first, and an unmeasured file does not start last", () => {
  expect(slowestFirst(FILES, DURATIONS)).toEqual([
    "tests/e2e/slow.test.ts",
    "packages/api/test/middle.test.ts",
    "tests/e2e/new.test.ts",
    "packages/base/src/a.test.ts",
  ]);
});

test("parts take about equally long", () => {
  expect(filesOfPart(FILES, DURATIONS, { number: 1, of: 2 })).toEqual(["tests/e2e/slow.test.ts"]);
  expect(filesOfPart(FILES, DURATIONS, { number: 2, of: 2 })).toHaveLength(3);
});

test("the parts contain each file exactly once, whatever the durations", () => {
  const files = listTestFiles(REPO_ROOT);
  expect(files.length).toBeGreaterThan(150);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.array(fc.nat(200), { minLength: files.length, maxLength: files.length }),
      (of, seconds) => {
        const durations = Object.fromEntries(files.map((file, index) => [file, seconds[index] ?? 0]));
        const parts = Array.from({ length: of }, (_, index) => filesOfPart(files, durations, { number: index + 1, of }));
        expect(parts.flat().sort()).toEqual(files);
      },
    ),
    { numRuns: 30 },
  );
});

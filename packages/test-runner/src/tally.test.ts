import { expect, test } from "vitest";
import { sumTallies, tallyResults } from "./tally.ts";

const result = (file: string, passed: number, failures: string[] = []) => ({ file, seconds: 1, passed, failures });

test("counts what passed and names what failed", () => {
  expect(tallyResults([result("a.test.ts", 2, ["test 1"]), result("b.test.ts", 3)], ["a.test.ts", "b.test.ts"], 1)).toEqual({
    passed: 5,
    failed: 1,
    failures: ["a.test.ts: test 1"],
  });
});

test("a file that was to run and has no result counts as one failure", () => {
  expect(tallyResults([result("a.test.ts", 2)], ["a.test.ts", "b.test.ts"], 0)).toEqual({
    passed: 2,
    failed: 1,
    failures: ["b.test.ts: not run"],
  });
});

test("an exit code without a failed test counts as one failure", () => {
  expect(tallyResults([result("a.test.ts", 1)], ["a.test.ts"], 1)).toMatchObject({ passed: 1, failed: 1 });
  expect(tallyResults([], [], null)).toMatchObject({ failed: 1 });
});

test("sums", () => {
  const part = { passed: 2, failed: 1, failures: ["x"] };
  expect(sumTallies([part, part])).toEqual({ passed: 4, failed: 2, failures: ["x", "x"] });
});

import { expect, test } from "vitest";
import { sumTallies, tallyReport } from "./tally.ts";

const file = (statuses: string[], status = "passed", message = "") => ({
  name: "a.test.ts",
  status,
  message,
  assertionResults: statuses.map((each, index) => ({ fullName: `test ${index}`, status: each })),
});

test("counts what passed and names what failed", () => {
  const tally = tallyReport({ testResults: [file(["passed", "failed", "passed"], "failed")] }, 1);
  expect(tally).toEqual({ passed: 2, failed: 1, failures: ["a.test.ts: test 1"] });
});

test("a skipped test has not passed", () => {
  expect(tallyReport({ testResults: [file(["passed", "pending", "todo"])] }, 0)).toMatchObject({ passed: 1, failed: 2 });
});

test("a file that could not be loaded counts as one failure", () => {
  expect(tallyReport({ testResults: [file([], "failed", "SyntaxError: x\n  at y")] }, 1)).toEqual({
    passed: 0,
    failed: 1,
    failures: ["a.test.ts: SyntaxError: x"],
  });
});

test("an exit code that no test explains counts as one failure", () => {
  expect(tallyReport({ testResults: [file(["passed"])] }, 1)).toMatchObject({ passed: 1, failed: 1 });
  expect(tallyReport({ testResults: [file(["passed"])] }, null)).toMatchObject({ failed: 1 });
});

test("sums", () => {
  const part = { passed: 2, failed: 1, failures: ["x"] };
  expect(sumTallies([part, part])).toEqual({ passed: 4, failed: 2, failures: ["x", "x"] });
});

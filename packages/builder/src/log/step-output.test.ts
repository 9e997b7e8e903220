import { expect, test } from "vitest";
import { StepOutput } from "./step-output.ts";

const LIMITS = { firstLines: 3, firstLength: 200, lastLines: 2, lineLength: 10 };

function outputOf(lines: readonly string[], limits = LIMITS): string[] {
  const written: string[] = [];
  const output = new StepOutput((message) => written.push(message), limits);
  for (const line of lines) output.add(line, "stdout");
  output.end();
  return written;
}

test("lines are trimmed, and empty ones are left out", () => {
  expect(outputOf(["  a \r", "", "   ", "b"])).toEqual(["[stdout]: a", "[stdout]: b"]);
});

test("of a flood, the beginning and the end are kept", () => {
  const flood = Array.from({ length: 100 }, (_, index) => String(index));
  expect(outputOf(flood)).toEqual([
    "[stdout]: 0",
    "[stdout]: 1",
    "[stdout]: 2",
    "… 95 lines were left out …",
    "[stdout]: 98",
    "[stdout]: 99",
  ]);
});

test("a few long lines are bounded like many short ones", () => {
  const lines = Array.from({ length: 4 }, () => "x".repeat(1_000));
  expect(outputOf(lines, { ...LIMITS, firstLines: 100, firstLength: 60 })[0]).toBe("[stdout]: xxxxxxxxxx … (990 more)");
  expect(outputOf(lines, { ...LIMITS, firstLines: 100, firstLength: 60 })).toContain("… 1 lines were left out …");
});

test("output that fits is not said to be left out", () => {
  expect(outputOf(["1", "2", "3", "4", "5"])).toEqual(["1", "2", "3", "4", "5"].map((line) => `[stdout]: ${line}`));
});

import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { formatLogLine } from "./log-line.ts";
import { createSteps } from "./steps.ts";
import { formatDuration, printable } from "./text.ts";

test.each([
  [0, "0.0 s"],
  [430, "0.4 s"],
  [9_949, "9.9 s"],
  [12_300, "12 s"],
  [59_700, "1 min 00 s"],
  [185_000, "3 min 05 s"],
])("%d ms is %s", (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test("foreign text cannot move the cursor", () => {
  expect(printable("a\u001b[2Jb\u009bc\td\ne")).toBe("a\\x1b[2Jb\\x9bc\td\ne");
});

test("a log line is formatted with its fields", () => {
  const line = '{"level":30,"time":"2026-11-20T12:00:01.234Z","component":"node","sandbox_id":"iabc","msg":"sandbox created"}';
  expect(formatLogLine(line)).toBe("12:00:01.234 info  node: sandbox created sandbox_id=iabc");
  expect(formatLogLine("plain \u001b[31mtext")).toBe("plain \\x1b[31mtext");
});

async function shown(work: (steps: ReturnType<typeof createSteps>) => Promise<unknown>): Promise<string> {
  const stream = new PassThrough();
  await work(createSteps(stream as unknown as NodeJS.WriteStream)).catch(() => {});
  return String(stream.read());
}

test("a step is one line with its result and duration, without colours outside of a terminal", async () => {
  const text = await shown((steps) =>
    steps.run(
      "a step",
      async () => 3,
      (count) => `${count} things`,
    ),
  );
  expect(text).toMatch(/^✓ a step {12} 3 things \(0\.\d s\)\n$/);
});

test("a step that fails is marked", async () => {
  const text = await shown((steps) =>
    steps.run(
      "a step",
      () => Promise.reject(new Error("no")),
      () => "",
    ),
  );
  expect(text).toMatch(/^✗ a step/);
});

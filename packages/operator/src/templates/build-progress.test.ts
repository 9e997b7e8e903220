import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { BuildProgress } from "./build-progress.ts";
import type { BuildEnd } from "./follow-build.ts";

const KEY = "0123456789abcdef".repeat(4);

/** What is shown for lines of a log that come a second apart. */
function shown(messages: readonly string[], end: BuildEnd, isVerbose = false): { text: string; counts: BuildProgress["counts"] } {
  const stream = new PassThrough();
  const progress = new BuildProgress({ stream: stream as unknown as NodeJS.WriteStream, isVerbose });
  for (const [index, message] of messages.entries()) {
    progress.add({ timestamp: new Date(1_000_000 + index * 1_000).toISOString(), message, level: "info" });
  }
  progress.end(end);
  return { text: String(stream.read()), counts: progress.counts };
}

const LINES = [
  "Building template a/b",
  `CACHED [base] FROM debian:13 [${KEY}]`,
  `CACHED [builder 1/2] USER root [${KEY}]`,
  `[builder 2/2] RUN echo [a] \\\n  b [${KEY}]`,
  "[builder 2/2] not cached: the command changed",
  "[builder 2/2] [stdout]: one",
  "[builder 2/2] [stderr]: two\u001b[2J",
];

test("each step is a line with its duration, or a mark that it was cached", () => {
  const { text, counts } = shown([...LINES, `[finalize] Finalizing template build [${KEY}]`, "Build finished, took 3s"], {
    status: "ready",
  });
  expect(text.split("\n")).toEqual([
    "✓ FROM debian:13  (CACHED)",
    "✓ 1/2 USER root  (CACHED)",
    "✓ 2/2 RUN echo [a] \\ b  (4.0 s, the command changed)",
    "✓ Finalizing template build  (1.0 s)",
    "",
  ]);
  expect(counts).toEqual({ steps: 2, cached: 1 });
});

test("the output of a step that fails is shown, without control characters", () => {
  const { text } = shown(LINES, { status: "error", message: "no", step: "2" });
  expect(text).toContain("✗ 2/2 RUN echo");
  expect(text).toMatch(/ {4}one\n {4}two\\x1b\[2J\n$/);
});

test("everything is shown on request, once", () => {
  const { text } = shown(LINES, { status: "error", message: "no", step: "2" }, true);
  expect(text.match(/one/g)).toHaveLength(1);
});

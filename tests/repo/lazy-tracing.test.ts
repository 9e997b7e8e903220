import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./repository.ts";

/** Prints the modules that loading `entry` loads, and whose path contains "opentelemetry". */
function loadedBy(entry: string): string[] {
  const program = `
    const { registerHooks } = await import("node:module");
    registerHooks({ load(url, context, next) { if (url.includes("opentelemetry")) console.log(url); return next(url, context); } });
    await import(${JSON.stringify(join(ROOT, entry))});`;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: ROOT, encoding: "utf8" });
  return output.split("\n").filter((line) => line !== "");
}

test("a process without a receiver of traces loads nothing of OpenTelemetry", () => {
  expect(loadedBy("services/skerry/serve.ts")).toEqual([]);
  // For comparison: the module that is loaded on demand does.
  expect(loadedBy("packages/telemetry/src/tracing/otlp-tracing.ts").length).toBeGreaterThan(10);
});

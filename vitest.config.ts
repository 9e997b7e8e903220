import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { FileResults } from "./tests/run/file-results.ts";
import projects from "./tests/run/projects.json" with { type: "json" };
import { SlowestFirst } from "./tests/run/slowest-first.ts";

const run = process.env.SKERRY_TEST_RUN;

// unit: no root, no network beyond loopback. integration: real parts, root. e2e: whole platforms through public interfaces.
export default defineConfig({
  test: {
    reporters: run === undefined ? ["default"] : ["default", new FileResults(run)],
    sequence: { sequencer: SlowestFirst },
    globalSetup: "tests/run/run-services.ts",
    // Tests of real parts wait about as often as they work, so three files keep two processors busy. All projects share the workers:
    // with a number of its own, each would have to wait for the last file of the one before it.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // A process for each file costs half a second of a processor and more. Integration tests have theirs, because they run parts of the
    // platform in the test's own process; the others keep no state in modules.
    projects: [
      { test: { name: "unit", include: projects.unit, isolate: false, testTimeout: 20_000 } },
      { test: { name: "integration", include: projects.integration, testTimeout: 120_000, hookTimeout: 180_000 } },
      { test: { name: "e2e", include: projects.e2e, isolate: false, testTimeout: 180_000, hookTimeout: 300_000 } },
    ],
  },
});

import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { FileResults } from "./tests/run/file-results.ts";
import projects from "./tests/run/projects.json" with { type: "json" };
import { SlowestFirst } from "./tests/run/slowest-first.ts";

/** Limits only end what hangs. Other work may take most of the machine, so they say nothing about speed. */
const LIMITS = { testTimeout: 240_000, hookTimeout: 240_000, expect: { poll: { timeout: 60_000 } } };
const run = process.env.SKERRY_TEST_RUN;

// unit: no root, no network beyond loopback. agent, integration: real parts, root. e2e: whole platforms through public interfaces.
export default defineConfig({
  test: {
    reporters: run === undefined ? ["default"] : ["default", new FileResults(run)],
    sequence: { sequencer: SlowestFirst },
    globalSetup: "tests/run/run-services.ts",
    // Tests of real parts wait about as often as they work, so three files keep two processors busy. All projects share the workers:
    // with a number of its own, each would have to wait for the last file of the one before it.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // A process for each file costs a second of a processor. Only the agent's tests need it: the agent that they run in their own process
    // owns that process, from its child processes to its limits.
    projects: [
      { test: { name: "unit", include: projects.unit, isolate: false, ...LIMITS } },
      { test: { name: "agent", include: projects.agent, ...LIMITS } },
      { test: { name: "integration", include: projects.integration, isolate: false, ...LIMITS } },
      { test: { name: "e2e", include: projects.e2e, isolate: false, ...LIMITS, testTimeout: 300_000, hookTimeout: 300_000 } },
    ],
  },
});

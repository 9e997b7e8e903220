import { defineConfig } from "vitest/config";

// unit: no root, no network beyond loopback. integration: real parts, root. e2e: whole platforms through public interfaces.
// Two files at a time: tests of real parts wait more than they work, and more than two would keep each other from the processors.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "services/**/*.test.ts", "tests/repo/**/*.test.ts", "tests/soak/**/*.test.ts"],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: "integration",
          include: ["packages/*/test/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["tests/e2e/**/*.test.ts", "tests/security/**/*.test.ts", "tests/fault/**/*.test.ts"],
          testTimeout: 180_000,
          hookTimeout: 300_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});

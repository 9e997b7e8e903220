import { EXIT_CODES } from "@skerry/setup/folder";
import { expect, test, vi } from "vitest";
import type { OperatorContext } from "./context.ts";
import { runOperator } from "./program.ts";

const context: OperatorContext = {
  version: "0.0.0",
  repoRoot: "/nowhere",
  mainScript: "/nowhere/main.ts",
  env: { SKERRY_DATA: "/nonexistent/data" },
  serve: () => Promise.reject(new Error("not in this test")),
  readOwner: () => Promise.reject(new Error("not in this test")),
  copyDatabase: () => Promise.reject(new Error("not in this test")),
  restoreDatabase: () => Promise.reject(new Error("not in this test")),
  cleanup: () => Promise.reject(new Error("not in this test")),
};

async function run(...args: string[]): Promise<{ exitCode: number; output: string }> {
  const written: string[] = [];
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, "write").mockImplementation((text) => {
      written.push(String(text));
      return true;
    }),
  );
  try {
    return { exitCode: await runOperator(context, args), output: written.join("") };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = undefined;
  }
}

test("help names every command and every exit code", async () => {
  const { exitCode, output } = await run("--help");
  expect(exitCode).toBe(0);
  for (const command of [
    "up",
    "down",
    "renew-secrets",
    "status",
    "env",
    "logs",
    "doctor",
    "templates",
    "users",
    "teams",
    "keys",
    "test",
    "bench",
    "soak",
  ])
    expect(output).toMatch(new RegExp(`^ {2}${command}\\b`, "m"));
  for (const { meaning } of Object.values(EXIT_CODES)) expect(output).toContain(meaning);
});

test.each([
  [["up", "--fast"]],
  [["fly"]],
  [["logs", "-n", "many"]],
  [["templates", "build"]],
  [["templates", "build", "x", "--cpu-count", "many"]],
  [["templates", "build", "x", "--shipped"]],
  [["users", "fly"]],
  [["users", "create-token", "u", "n", "--expires", "tomorrow"]],
  [["teams", "create"]],
  [["teams", "set-member", "t", "u", "king"]],
  [["teams", "limits", "t", "--set", "sandboxes=many"]],
  [["keys", "create", "n", "--metadata", "novalue"]],
])("%j is an invalid command line", async (args) => {
  expect((await run(...args)).exitCode).toBe(EXIT_CODES.usage.code);
});

test("without a platform, env and status say so", async () => {
  const answers = [
    await run("env"),
    await run("status"),
    await run("logs"),
    await run("templates"),
    await run("templates", "build", "x"),
    await run("teams"),
  ];
  for (const { exitCode, output } of answers) {
    expect(exitCode).toBe(EXIT_CODES.notRunning.code);
    expect(output).toContain("./skerry up");
  }
});

test.each([[["templates"]], [["templates", "build", "x", "."]], [["templates", "delete", "x"]]])(
  "%j takes the data folder after its name",
  async (command) => {
    expect((await run(...command, "--data", "/nonexistent/other")).output).toContain("/nonexistent/other");
  },
);

test("status is JSON for programs", async () => {
  const { output } = await run("status", "--json");
  expect(JSON.parse(output)).toMatchObject({ running: false, healthy: false, dataDir: "/nonexistent/data" });
});

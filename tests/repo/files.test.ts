import { globSync } from "node:fs";
import { expect, test } from "vitest";
import projects from "../run/projects.json" with { type: "json" };
import { importsOf, isTest, isTypeScript, ROOT, readText, repositoryFiles } from "./repository.ts";

/** File names that do not say what a file contains. */
const EMPTY_NAMES: ReadonlySet<string> = new Set(["util", "utils", "helper", "helpers", "common", "misc", "manager", "shared", "lib"]);
const MAX_SOURCE_LINES = 400;
const MAX_TEST_LINES = 600;

/** Files that may start programs. All others call `runCommand` or `spawnCommand`. */
const MAY_SPAWN: readonly RegExp[] = [/^packages\/base\/src\/subprocess\.ts$/, /^packages\/agent\/src\/process\//];

const files = repositoryFiles();
const code = files.filter(isTypeScript);

test("file and folder names say what is inside", () => {
  // Files of the base template have the names that distributions give them.
  const own = files.filter((path) => !path.startsWith("templates/base/files/"));
  const wrong = own.filter((path) => path.split("/").some((part) => EMPTY_NAMES.has(part.split(".")[0]?.toLowerCase() ?? "")));
  expect(wrong).toEqual([]);
});

test("code files have kebab-case names", () => {
  const wrong = code.filter((path) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*\.ts$/.test(path.split("/").at(-1) ?? ""));
  expect(wrong).toEqual([]);
});

test("every test file is in one project of the test runner", () => {
  const tests = repositoryFiles().filter((path) => path.endsWith(".test.ts"));
  const inProjects = Object.values(projects).flatMap((patterns) => globSync(patterns, { cwd: ROOT, exclude: ["**/node_modules/**"] }));
  expect(inProjects.sort()).toEqual(tests.sort());
});

test("files stay small", () => {
  const sizes = code.map((path) => ({ path, lines: readText(path).split("\n").length - 1 }));
  expect(sizes.filter(({ path, lines }) => lines > (isTest(path) ? MAX_TEST_LINES : MAX_SOURCE_LINES))).toEqual([]);
  const sources = sizes.filter(({ path }) => !isTest(path)).map(({ lines }) => lines);
  sources.sort((a, b) => a - b);
  expect(sources[Math.floor(sources.length / 2)]).toBeLessThanOrEqual(90);
  expect(sources[Math.floor(sources.length * 0.9)]).toBeLessThanOrEqual(250);
});

test("programs are started in one place", () => {
  const importers = code.filter((path) => !isTest(path) && importsOf(readText(path)).some((name) => /^(node:)?child_process$/.test(name)));
  expect(importers.filter((path) => !MAY_SPAWN.some((allowed) => allowed.test(path)))).toEqual([]);
  expect(importers).toContain("packages/base/src/subprocess.ts");
});

test("privileges, mounts and the like are data with a reason", () => {
  const tables = files.filter((path) => /^packages\/runtime\/src\/spec\/(capabilities|mounts|sysctls|kernel-paths)\.ts$/.test(path));
  expect(tables.length).toBeGreaterThan(0);
  for (const path of tables) {
    const reasons = [...readText(path).matchAll(/\bwhy: "([^"]*)"/g)].map((match) => match[1] ?? "");
    expect(reasons.length, path).toBeGreaterThan(0);
    expect(
      reasons.filter((reason) => reason.trim().length < 3),
      path,
    ).toEqual([]);
  }
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeScope, type SelectionOptions, selectTests } from "./selection.ts";

let dir: string;
let repoRoot: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "skerry-selection-"));
  repoRoot = join(dir, "repo");
  for (const name of ["slow", "middle", "quick"]) write(`tests/e2e/${name}.test.ts`, name);
  write("tests/run/projects.json", JSON.stringify({ e2e: ["tests/e2e/*.test.ts"] }));
  const durations = { "tests/e2e/slow.test.ts": 60, "tests/e2e/middle.test.ts": 30, "tests/e2e/quick.test.ts": 5 };
  write("tests/run/durations.json", JSON.stringify({ sample: durations, full: durations }));
  await git("init", "-q");
  await commit();
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(join(repoRoot, path, ".."), { recursive: true });
  writeFileSync(join(repoRoot, path), text);
}
const git = (...args: string[]) => runCommand("git", ["-C", repoRoot, "-c", "user.name=t", "-c", "user.email=t@example.com", ...args]);
const commit = async () => {
  await git("add", "-A");
  await git("commit", "-qm", "x");
};
const select = (options: SelectionOptions["options"] = {}, pattern?: string) =>
  selectTests({ repoRoot, cacheDir: join(dir, "cache"), pattern, options });
const namesOf = ({ run }: { run: { readPlan(): { files: readonly string[] } } }) =>
  run.readPlan().files.map((file) => file.replace(/.*\/|\.test\.ts/g, ""));

test("selects all files, or those that match a pattern", async () => {
  expect(namesOf(await select())).toEqual(["slow", "middle", "quick"]);
  expect(namesOf(await select({}, "mid"))).toEqual(["middle"]);
  await expect(select({}, "nothing")).rejects.toMatchObject({ exit: "usage" });
});

test("selects one of several parts; the first includes the static checks", async () => {
  const [first, second] = [await select({ part: "1/2" }), await select({ part: "2/2" })];
  expect([namesOf(first), namesOf(second)]).toEqual([["slow"], ["middle", "quick"]]);
  expect([first.withStaticChecks, second.withStaticChecks]).toEqual([true, false]);
  expect(describeScope(second)).toContain("left out: the other parts (this was part 2 of 2)");
});

test("parts do not change while they run", async () => {
  await expect(select({ part: "1/2", saveDurations: true })).rejects.toMatchObject({ exit: "usage" });
});

test.each(["", "2", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"])("%j is not a part", async (part) => {
  await expect(select({ part })).rejects.toMatchObject({ exit: "usage", message: expect.stringContaining("2/4") });
});

test("a resumed run skips files that passed at this depth, until the checkout changes", async () => {
  const before = await select();
  before.run.addResult({ file: "tests/e2e/slow.test.ts", seconds: 1, passed: 3, failures: [] });
  before.run.addResult({ file: "tests/e2e/middle.test.ts", seconds: 1, passed: 2, failures: ["x"] });
  before.run.addResult({ file: "tests/e2e/quick.test.ts", seconds: 1, passed: 0, failures: [] });
  const resumed = await select({ resume: true });
  expect(namesOf(resumed)).toEqual(["middle", "quick"]);
  expect(describeScope(resumed)).toContain("left out: 1 files that passed in an earlier run");
  expect(namesOf(await select({ resume: true, all: true }))).toHaveLength(3);
  // A part is made of all files, so that no file changes its part when others have passed.
  expect(namesOf(await select({ resume: true, part: "1/2" }))).toEqual([]);

  const again = await select();
  again.run.addResult({ file: "tests/e2e/slow.test.ts", seconds: 1, passed: 2, failures: ["it fails now"] });
  expect(namesOf(await select({ resume: true }))).toContain("slow");
  again.run.addResult({ file: "tests/e2e/slow.test.ts", seconds: 1, passed: 3, failures: [] });
  write("tests/e2e/untracked.ts", "new");
  expect(namesOf(await select({ resume: true }))).toHaveLength(3);
});

test("describes what a sample left out, with one line for each matrix", async () => {
  const selection = await select();
  for (const ran of [2, 2]) selection.run.addLeftOut({ what: "crash points", ran, of: 9 });
  for (const suite of ["lists", "forks", "lists"]) selection.run.addLeftOut({ what: "databases", suite, ran: 1, of: 2 });
  expect(describeScope(selection)).toEqual([
    "left out: 1 of 2 databases in: forks, lists",
    "left out: 7 of 9 crash points",
    "(./skerry test --all runs everything)",
  ]);
  expect(describeScope(await select({ all: true }))).toEqual([]);
});

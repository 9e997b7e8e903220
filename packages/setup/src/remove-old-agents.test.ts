import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDataFolder, type DataFolder } from "./folder/data-folder.ts";
import { removeOldAgents } from "./remove-old-agents.ts";

let folder: DataFolder;
beforeEach(async () => {
  folder = await createDataFolder(realpathSync(mkdtempSync(join(tmpdir(), "agents-"))));
});
afterEach(() => rmSync(folder.root, { recursive: true }));

const name = (digit: string) => digit.repeat(16);

function makeTree(digit: string, ageHours = 2): string {
  const path = join(folder.agentDir, name(digit));
  mkdirSync(join(path, "bin"), { recursive: true });
  const time = Date.now() / 1000 - ageHours * 3600;
  utimesSync(path, time, time);
  return path;
}

test("old trees are removed; those named, young ones and links stay", async () => {
  for (const digit of ["0", "1", "2"]) makeTree(digit);
  makeTree("3", 0.5);
  symlinkSync("/", join(folder.agentDir, name("4")));
  writeFileSync(folder.agentFile, "{}");
  // Left by an earlier removal that was interrupted.
  mkdirSync(join(folder.workDir, "agent-old-x/bin"), { recursive: true });
  await removeOldAgents(folder, new Set([name("0"), name("1")]));
  const kept = ["0", "1", "3", "4"].map(name);
  expect(readdirSync(folder.agentDir).toSorted()).toEqual([...kept, "current.json"]);
  expect(readdirSync(folder.workDir)).toEqual([]);
});

test("a new data folder has nothing to remove", async () => {
  await removeOldAgents(folder, new Set());
  expect(readdirSync(folder.agentDir)).toEqual([]);
});

import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

function addRecord(file: string, text: string): void {
  const path = join(folder.root, "node", file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

test("trees that nobody needs go; the others stay", async () => {
  for (const digit of ["0", "1", "2"]) makeTree(digit);
  makeTree("3", 0.5);
  symlinkSync("/", join(folder.agentDir, name("4")));
  writeFileSync(folder.agentFile, "{}");
  addRecord("sandboxes/ione/sandbox.json", JSON.stringify({ agentDir: makeTree("5") }));
  addRecord("images/mone/image.json", JSON.stringify({ agentDir: makeTree("6") }));
  addRecord("sandboxes/icutoff/sandbox.json", '{"agentDir":');
  mkdirSync(join(folder.root, "node/sandboxes/ihalfmade"));
  // What an earlier removal left when it was cut off.
  mkdirSync(join(folder.workDir, "agent-old-x/bin"), { recursive: true });
  await removeOldAgents(folder, new Set([name("0"), name("1")]));
  const kept = ["0", "1", "3", "4", "5", "6"].map(name);
  expect(readdirSync(folder.agentDir).toSorted()).toEqual([...kept, "current.json"]);
  expect(readdirSync(folder.workDir)).toEqual([]);
});

test("a new data folder has nothing to remove", async () => {
  await removeOldAgents(folder, new Set());
  expect(readdirSync(folder.agentDir)).toEqual([]);
});

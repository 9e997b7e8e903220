import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ParsedFile } from "./parsed-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skerry-parsed-file-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function lines() {
  const path = join(folder, "lines");
  const parsed: string[] = [];
  const file = new ParsedFile(path, (text) => {
    parsed.push(text);
    return text.split("\n");
  });
  return { path, parsed, file };
}

it("is read once while nothing changes", async () => {
  const { path, parsed, file } = lines();
  writeFileSync(path, "a\nb");
  await sleep(150);
  for (let round = 0; round < 3; round++) expect(file.read()).toEqual(["a", "b"]);
  expect(parsed.length).toBe(1);
});

it("shows every change at once, also of the same length and right after another", async () => {
  const { path, file } = lines();
  writeFileSync(path, "0000");
  await sleep(150);
  file.read();
  for (let round = 0; round < 200; round++) {
    const text = String(round).padStart(4, "0");
    writeFileSync(path, text);
    expect(file.read()).toEqual([text]);
  }
});

it("shows a file that was put in its place, and none when it is gone", async () => {
  const { path, file } = lines();
  writeFileSync(path, "old");
  await sleep(150);
  expect(file.read()).toEqual(["old"]);
  writeFileSync(`${path}.new`, "new");
  renameSync(`${path}.new`, path);
  expect(file.read()).toEqual(["new"]);
  rmSync(path);
  expect(file.read()).toEqual([""]);
});

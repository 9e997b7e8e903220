import { closeSync, openSync } from "node:fs";
import { expect, it } from "vitest";
import { countOpenFiles, openFilesLimit } from "./open-files.privileged.ts";

it("counts the open files of a process", () => {
  const before = countOpenFiles(process.pid);
  if (before === undefined) return; // A kernel before 6.2.
  const opened = Array.from({ length: 100 }, () => openSync("/dev/null", "r"));
  expect((countOpenFiles(process.pid) ?? 0) - before).toBeGreaterThan(90);
  expect(openFilesLimit(process.pid)).toBeGreaterThan(before + 100);
  for (const fd of opened) closeSync(fd);
});

it("returns undefined for a process that does not exist", () => {
  expect(countOpenFiles(2 ** 22 + 1)).toBeUndefined();
  expect(() => openFilesLimit(2 ** 22 + 1)).toThrow();
});

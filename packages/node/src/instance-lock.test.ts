import { closeSync, mkdtempSync, openSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockFile } from "@skerry/base/linux";
import { expect, it } from "vitest";
import { keepOutEarlierVersions, lockInstance } from "./instance-lock.privileged.ts";

it("is had by one at a time, free again after its release, and out of others' reach", () => {
  const dir = mkdtempSync(join(tmpdir(), "skerry-lock-"));
  const first = lockInstance(dir);
  expect(() => lockInstance(dir)).toThrow(`another process (pid ${process.pid})`);
  expect(statSync(join(dir, "instance.lock")).mode & 0o777).toBe(0o600);
  first.release();
  lockInstance(dir).release();
  rmSync(dir, { recursive: true });
});

it("keeps out earlier versions, which lock another file, and is not had while one of them runs", () => {
  const dir = mkdtempSync(join(tmpdir(), "skerry-lock-"));
  const openAsEarlier = () => openSync(join(dir, "lock"), "w", 0o600);
  const fd = openAsEarlier();
  lockFile(fd);
  expect(() => lockInstance(dir)).toThrow(`another process (pid ${process.pid})`);
  closeSync(fd);
  for (const _start of ["first", "second"]) {
    const lock = lockInstance(dir);
    keepOutEarlierVersions(dir);
    lock.release();
    expect(openAsEarlier).toThrow("EISDIR");
  }
  rmSync(dir, { recursive: true });
});

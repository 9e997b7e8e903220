import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lockInstance } from "./instance-lock.privileged.ts";

it("is had by one at a time, free again after its release, and out of others' reach", () => {
  const dir = mkdtempSync(join(tmpdir(), "skerry-lock-"));
  const first = lockInstance(dir);
  expect(() => lockInstance(dir)).toThrow(`another process (pid ${process.pid})`);
  expect(statSync(join(dir, "lock")).mode & 0o777).toBe(0o600);
  first.release();
  lockInstance(dir).release();
  rmSync(dir, { recursive: true });
});

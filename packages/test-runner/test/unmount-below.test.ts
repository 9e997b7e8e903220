import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, spawnCommand } from "@skerry/base";
import { unmountBelow } from "@skerry/test-runner";
import { expect, it } from "vitest";

it("waits while a mount is busy, and gives up after its limit", async () => {
  const dir = mkdtempSync(join(tmpdir(), "unmount-below-"));
  const inner = join(dir, "outer/inner");
  mkdirSync(join(dir, "outer"));
  for (const path of [join(dir, "outer"), inner]) {
    mkdirSync(path, { recursive: true });
    await runCommand("mount", ["-t", "tmpfs", "tmpfs", path]);
  }
  writeFileSync(join(inner, "file"), "");
  const user = spawnCommand("sleep", ["1000"], { cwd: inner });
  await expect.poll(() => readFileSync(`/proc/${user.pid}/comm`, "utf8")).toBe("sleep\n");
  await expect(unmountBelow(dir, 200)).rejects.toThrow("busy");
  expect(existsSync(join(inner, "file"))).toBe(true);
  const unmounting = unmountBelow(dir);
  setTimeout(() => user.kill("SIGKILL"), 300);
  await unmounting;
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(dir);
  rmSync(dir, { recursive: true });
});

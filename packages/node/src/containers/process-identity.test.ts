import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { isSameProcess, processStartTime } from "./process-identity.ts";

it("tells a running process from an ended one and from another of the same number", async () => {
  const child = spawn("sleep", ["30"]);
  const pid = child.pid ?? 0;
  const startTime = processStartTime(pid) ?? "";
  expect(startTime).toMatch(/^\d+$/);
  expect(isSameProcess({ pid, startTime })).toBe(true);
  expect(isSameProcess({ pid, startTime: "1" })).toBe(false);
  child.kill("SIGKILL");
  await once(child, "close");
  expect(isSameProcess({ pid, startTime })).toBe(false);
  expect(isSameProcess(undefined)).toBe(false);
});

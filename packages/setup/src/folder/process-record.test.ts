import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, spawnCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeProcess, readLiveProcess, writeProcessRecord } from "./process-record.ts";
import { takeSetupLock } from "./setup-lock.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "record-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a process is known again", async () => {
  await writeProcessRecord(join(dir, "pid"), process.pid);
  expect(await readLiveProcess(join(dir, "pid"))).toMatchObject({ pid: process.pid });
});

test("another process with the same pid is not it", async () => {
  const record = await describeProcess(process.pid);
  writeFileSync(join(dir, "pid"), JSON.stringify({ ...record, startTicks: (record?.startTicks ?? 0) - 1 }));
  expect(await readLiveProcess(join(dir, "pid"))).toBeUndefined();
});

test("a process from before the last boot is not it", async () => {
  writeFileSync(join(dir, "pid"), JSON.stringify({ ...(await describeProcess(process.pid)), bootId: "another" }));
  expect(await readLiveProcess(join(dir, "pid"))).toBeUndefined();
});

test("a process that ended is gone", async () => {
  const child = spawnCommand("sleep", ["100"]);
  await writeProcessRecord(join(dir, "pid"), child.pid ?? 0);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  expect(await readLiveProcess(join(dir, "pid"))).toBeUndefined();
});

test("one set-up at a time; what a dead process has left does not hold", async () => {
  const path = join(dir, "lock");
  {
    await using _lock = await takeSetupLock(path);
    await expect(takeSetupLock(path)).rejects.toThrow(/another \.\/skerry command \(process \d+\)/);
  }
  writeFileSync(path, JSON.stringify({ pid: 1, startTicks: -1, bootId: "x" }));
  await using lock = await takeSetupLock(path);
  expect(lock).toBeDefined();
});

test("who waits gets the lock when it is free", async () => {
  const path = join(dir, "lock");
  const first = await takeSetupLock(path);
  const order: string[] = [];
  const second = takeSetupLock(path, { wait: true }).then((lock) => {
    order.push("second");
    return lock;
  });
  order.push("first is done");
  await first[Symbol.asyncDispose]();
  await (await second)[Symbol.asyncDispose]();
  expect(order).toEqual(["first is done", "second"]);
});

test("a lock ends with its process, and needs no room on the disk", async () => {
  const path = join(dir, "lock");
  const disk = join(dir, "disk");
  mkdirSync(disk);
  await runCommand("mount", ["-t", "tmpfs", "-o", "size=16k,nr_inodes=3", "tmpfs", disk]);
  try {
    const full = join(disk, "lock");
    writeFileSync(full, "");
    expect(() => writeFileSync(join(disk, "rest"), Buffer.alloc(64 * 1024))).toThrow(/ENOSPC/);
    await using _lock = await takeSetupLock(full);
    await expect(takeSetupLock(full)).rejects.toThrow(/another \.\/skerry command is setting up/);
  } finally {
    await runCommand("umount", [disk]);
  }
  const script = `
    import { takeSetupLock } from ${JSON.stringify(join(import.meta.dirname, "setup-lock.ts"))};
    await takeSetupLock(${JSON.stringify(path)});
    process.kill(process.pid, "SIGKILL");`;
  const child = spawnCommand(process.execPath, ["--input-type=module", "-e", script]);
  await new Promise((resolve) => child.once("exit", resolve));
  await using lock = await takeSetupLock(path);
  expect(lock).toBeDefined();
});

test("of many who want the lock at the same moment one gets it", async () => {
  const path = join(dir, "lock");
  const taken = await Promise.allSettled(Array.from({ length: 20 }, () => takeSetupLock(path)));
  expect(taken.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(readdirSync(dir)).toEqual(["lock"]);
});

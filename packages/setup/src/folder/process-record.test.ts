import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, spawnCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test } from "vitest";
import { dataFolder } from "./data-folder.ts";
import { describeProcess, readLiveProcess, writeProcessRecord } from "./process-record.ts";
import { deleteDataFolder, takeSetupLock, waitForSetupLock } from "./setup-lock.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "record-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a running process matches its record", async () => {
  await writeProcessRecord(join(dir, "pid"), process.pid);
  expect(await readLiveProcess(join(dir, "pid"))).toMatchObject({ pid: process.pid });
});

test("another process with the same pid does not match", async () => {
  const record = await describeProcess(process.pid);
  writeFileSync(join(dir, "pid"), JSON.stringify({ ...record, startTicks: (record?.startTicks ?? 0) - 1 }));
  expect(await readLiveProcess(join(dir, "pid"))).toBeUndefined();
});

test("a process of an earlier boot does not match", async () => {
  writeFileSync(join(dir, "pid"), JSON.stringify({ ...(await describeProcess(process.pid)), bootId: "another" }));
  expect(await readLiveProcess(join(dir, "pid"))).toBeUndefined();
});

test("a process that has ended does not match", async () => {
  const child = spawnCommand("sleep", ["100"]);
  await writeProcessRecord(join(dir, "pid"), child.pid ?? 0);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  expect(await readLiveProcess(join(dir, "pid"))).toBeUndefined();
});

test("only one process holds the lock; a dead process holds none", async () => {
  const path = join(dir, "lock");
  {
    await using _lock = await takeSetupLock(path);
    await expect(takeSetupLock(path)).rejects.toThrow(/another \.\/skerry command \(process \d+\)/);
  }
  writeFileSync(path, JSON.stringify({ pid: 1, startTicks: -1, bootId: "x" }));
  await using lock = await takeSetupLock(path);
  expect(lock).toBeDefined();
});

test("a waiting process gets the lock when it is free", async () => {
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

test("a lock ends with its process and needs no disk space", async () => {
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
    await runCommand("umount", ["--lazy", disk]);
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

test("who waits for the lock of a data folder that is deleted gets none, and leaves nothing there", async () => {
  const folder = dataFolder(join(dir, "data"));
  mkdirSync(join(folder.root, "node/deep"), { recursive: true });
  for (const file of [folder.settingsFile, folder.pidFile]) writeFileSync(file, "{}");
  const waiting = [];
  {
    await using _lock = await takeSetupLock(folder.lockFile);
    waiting.push(waitForSetupLock(folder), waitForSetupLock(folder));
    await deleteDataFolder(folder);
    waiting.push(waitForSetupLock(folder));
  }
  expect(await Promise.all(waiting)).toEqual([undefined, undefined, undefined]);
  expect(existsSync(folder.root)).toBe(false);
});

test("of many concurrent processes, one gets the lock", async () => {
  const path = join(dir, "lock");
  const taken = await Promise.allSettled(Array.from({ length: 20 }, () => takeSetupLock(path)));
  expect(taken.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(readdirSync(dir)).toEqual(["lock"]);
});

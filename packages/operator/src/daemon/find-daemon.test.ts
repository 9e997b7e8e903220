import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { type DataFolder, dataFolder, writeProcessRecord } from "@skerry/setup/folder";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startLockHolder } from "../../test/lock-holder.ts";
import { findDaemon } from "./find-daemon.ts";
import { stopDaemon } from "./stop-daemon.ts";

let folder: DataFolder;
const children: ReturnType<typeof spawnCommand>[] = [];
beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), "daemon-")));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder.root, { recursive: true });
});

function spawn(command: string, ...args: string[]) {
  const child = spawnCommand(command, args);
  children.push(child);
  return { pid: child.pid ?? 0, child };
}

async function holder(): Promise<number> {
  const child = await startLockHolder(folder.daemonLockFile);
  children.push(child);
  return child.pid ?? 0;
}

test("the daemon is the process with the lock, whatever the pid file names", async () => {
  expect(await findDaemon(folder)).toBeUndefined();
  const pid = await holder();
  expect(await findDaemon(folder)).toMatchObject({ pid });
  await writeProcessRecord(folder.pidFile, spawn("tail", "-f", "/dev/null", "serve").pid);
  expect(await findDaemon(folder)).toMatchObject({ pid });
  writeFileSync(folder.pidFile, "not JSON");
  expect(await findDaemon(folder)).toMatchObject({ pid });
});

test("a daemon of an older version, without a lock, is found by the pid file; another process in the pid file is ignored", async () => {
  const old = spawn("tail", "-f", "/dev/null", "serve").pid;
  await writeProcessRecord(folder.pidFile, old);
  expect(await findDaemon(folder)).toMatchObject({ pid: old });
  await writeProcessRecord(folder.pidFile, spawn("tail", "-f", "/dev/null").pid);
  expect(await findDaemon(folder)).toBeUndefined();
});

test("every process that serves the folder is stopped, and another process in the pid file is not", async () => {
  const bystander = spawn("tail", "-f", "/dev/null");
  await writeProcessRecord(folder.pidFile, bystander.pid);
  await holder();
  await holder();
  expect(await stopDaemon(folder)).toBe("stopped");
  expect(await findDaemon(folder)).toBeUndefined();
  expect(bystander.child.exitCode ?? bystander.child.signalCode).toBeNull();
  expect(await stopDaemon(folder)).toBe("was not running");
});

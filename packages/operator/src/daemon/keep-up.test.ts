import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type DataFolder,
  dataFolder,
  deleteDataFolder,
  readLiveProcess,
  removeProcessRecord,
  takeSetupLock,
  writeProcessRecord,
} from "@skerry/setup/folder";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startLockHolder } from "../../test/lock-holder.ts";
import { type KeepUpTiming, keepUp } from "./keep-up.ts";
import { stopDaemon } from "./stop-daemon.ts";

const TIMING: KeepUpTiming = { pollMs: 5, firstDelayMs: 5, quickFallMs: 60_000, quickFalls: 3 };
/** A process has to be started. */
const PATIENCE = { timeout: 60_000 };

let folder: DataFolder;
let stop: AbortController;
let said: string[];
const children: Awaited<ReturnType<typeof startLockHolder>>[] = [];
beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), "keep-up-")));
  writeFileSync(folder.settingsFile, "{}");
  stop = new AbortController();
  said = [];
});
afterEach(() => {
  stop.abort();
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder.root, { recursive: true, force: true });
});

/** Starts a process that takes the daemon's place. */
async function start(): Promise<void> {
  const child = await startLockHolder(folder.daemonLockFile);
  children.push(child);
  await writeProcessRecord(folder.pidFile, child.pid ?? 0);
}

const keep = (begin: () => Promise<void> = start) =>
  keepUp({ folder, start: begin, say: (text) => said.push(text), signal: stop.signal, timing: TIMING });
const pid = async () => (await readLiveProcess(folder.pidFile))?.pid;

test("a killed daemon is restarted, and no sandbox is killed", async () => {
  await start();
  const keeping = keep();
  const first = await pid();
  children[0]?.kill("SIGKILL");
  await vi.waitFor(() => expect(said).toHaveLength(2), PATIENCE);
  expect(await pid()).not.toBe(first);
  expect(said).toEqual([expect.stringMatching(/crashed. Sandboxes keep running/), "The platform is running again."]);
  stop.abort();
  expect(await keeping).toBe("interrupted");
  expect(await pid()).toBeDefined();
});

test("a pid file that is lost while the daemon runs is written again, so that a later crash does not look like a stop", async () => {
  await start();
  const first = await pid();
  const keeping = keep();
  rmSync(folder.pidFile);
  await vi.waitFor(async () => expect(await pid()).toBe(first), PATIENCE);
  children[0]?.kill("SIGKILL");
  await vi.waitFor(() => expect(said).toContain("The platform is running again."), PATIENCE);
  stop.abort();
  expect(await keeping).toBe("interrupted");
});

test("a daemon that keeps crashing is not restarted any more", async () => {
  await start();
  children[0]?.kill("SIGKILL");
  let starts = 0;
  const failing = async () => {
    starts += 1;
    // As a failed start does.
    await removeProcessRecord(folder.pidFile);
    throw new Error("no database");
  };
  await expect(keep(failing)).rejects.toMatchObject({
    message: expect.stringMatching(/crashed 4 times in a row/),
    hints: expect.arrayContaining([expect.stringMatching(/keep running/), expect.stringMatching(/skerry up\. .*skerry down/)]),
  });
  expect(starts).toBe(3);
  expect(said).toContain("The platform could not be restarted: no database");
});

test("a data folder that is deleted while its platform is kept up is not made again", async () => {
  await start();
  const keeping = keep();
  {
    await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
    await stopDaemon(folder);
    // By now, the other one waits for the lock.
    await sleep(20 * TIMING.pollMs);
    await deleteDataFolder(folder);
  }
  expect(await keeping).toBe("ended");
  expect(existsSync(folder.root)).toBe(false);
});

test("a lock file that somebody removed ends nothing", async () => {
  await start();
  const keeping = keep();
  rmSync(folder.lockFile, { force: true });
  children[0]?.kill("SIGKILL");
  await vi.waitFor(() => expect(said).toContain("The platform is running again."), PATIENCE);
  stop.abort();
  expect(await keeping).toBe("interrupted");
});

test("a daemon that was stopped on purpose stays down", async () => {
  await start();
  const keeping = keep();
  {
    await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
    await stopDaemon(folder);
  }
  expect(await keeping).toBe("ended");
  rmSync(folder.root, { recursive: true });
  expect(await keep()).toBe("ended");
  expect(children).toHaveLength(1);
});

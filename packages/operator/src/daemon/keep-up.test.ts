import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type DataFolder, dataFolder } from "../data-folder.ts";
import { type KeepUpTiming, keepUp } from "./keep-up.ts";
import { readLiveProcess, removeProcessRecord, writeProcessRecord } from "./process-record.ts";

const TIMING: KeepUpTiming = { pollMs: 5, firstDelayMs: 5, quickFallMs: 60_000, quickFalls: 3 };

let folder: DataFolder;
let stop: AbortController;
let said: string[];
const children: ReturnType<typeof spawnCommand>[] = [];
beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), "keep-up-")));
  stop = new AbortController();
  said = [];
});
afterEach(() => {
  stop.abort();
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder.root, { recursive: true, force: true });
});

/** Some process in the daemon's place: what it does is of no matter here. */
async function start(): Promise<void> {
  const child = spawnCommand("sleep", ["100"]);
  children.push(child);
  await writeProcessRecord(folder.pidFile, child.pid ?? 0);
}

const keep = (begin: () => Promise<void> = start) =>
  keepUp({ folder, start: begin, say: (text) => said.push(text), signal: stop.signal, timing: TIMING });
const pid = async () => (await readLiveProcess(folder.pidFile))?.pid;

test("a killed daemon is started again, and nothing is ended", async () => {
  await start();
  const keeping = keep();
  const first = await pid();
  children[0]?.kill("SIGKILL");
  await vi.waitFor(() => expect(said).toHaveLength(2));
  expect(await pid()).not.toBe(first);
  expect(said).toEqual([expect.stringMatching(/ended by itself. Its sandboxes go on/), "The platform is up again."]);
  stop.abort();
  expect(await keeping).toBe("interrupted");
  expect(await pid()).toBeDefined();
});

test("a daemon that falls again and again is given up, with what to do", async () => {
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
    message: expect.stringMatching(/ended by itself 4 times in a row/),
    mend: expect.arrayContaining([expect.stringMatching(/left as they are/), expect.stringMatching(/skerry up .*skerry down/)]),
  });
  expect(starts).toBe(3);
  expect(said).toContain("It could not be started again: no database");
});

test("a daemon that was ended on purpose stays down", async () => {
  await start();
  const keeping = keep();
  await removeProcessRecord(folder.pidFile);
  expect(await keeping).toBe("ended");
  rmSync(folder.root, { recursive: true });
  expect(await keep()).toBe("ended");
  expect(children).toHaveLength(1);
});

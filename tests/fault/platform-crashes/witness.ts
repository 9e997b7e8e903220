// The content of a sandbox's memory and disk, as reported by a program inside it: witness.py.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunningPlatform } from "@skerry/testkit";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { expect } from "vitest";
import { clientOf } from "../../e2e/client.ts";

const PROGRAM = "/home/user/witness.py";
const PORT = 8000;
/** Two names of one file of the template. A write under one name must show under the other. */
const LINKED = { changed: "/usr/bin/perlbug", other: "/usr/bin/perlthanks" };
const MARK = "# changed under another name";

interface Alive {
  readonly alive: true;
  readonly nonce: string;
  readonly pid: number;
  readonly processes: readonly boolean[];
  readonly count: number;
  readonly countOnDisk: number;
  readonly kept: Readonly<Record<"memory" | "shm" | "open" | "deleted", boolean>>;
  readonly connection: true | string;
}
interface Gone {
  readonly alive: false;
  readonly why: string;
  readonly shm: boolean;
  readonly disk: boolean;
  readonly countOnDisk: number;
}
type Testimony = Alive | Gone;

/** A report of the witness at one moment. */
export type Seen = Alive;

/** Starts the witness in a running sandbox. */
export async function startWitness(platform: RunningPlatform, sandboxId: string): Promise<Seen> {
  const sandbox = await reach(platform, sandboxId);
  await sandbox.files.write(PROGRAM, readFileSync(join(import.meta.dirname, "witness.py"), "utf8"));
  await changeLinked(platform, sandboxId);
  await sandbox.commands.run(`python3 ${PROGRAM} keep`, { background: true, timeoutMs: 0 });
  let seen: Testimony | undefined;
  await waitUntil("the witness answers", async () => {
    seen = await ask(sandbox).catch(() => undefined);
    return seen?.alive === true;
  });
  return seen as Seen;
}

/** Writes to a file of the template. The data must show under the file's other names. */
export async function changeLinked(platform: RunningPlatform, sandboxId: string): Promise<void> {
  const sandbox = await reach(platform, sandboxId);
  await sandbox.commands.run(`echo '${MARK}' >> ${LINKED.changed}`, { user: "root" });
}

/**
 * Asks the witness of a running sandbox. Returns true if all processes, open files, `/dev/shm`, counters and connections are as in `seen`,
 * and continue. Returns false if all of them are lost and the disk is unchanged. Fails for anything in between.
 */
export async function hasMemory(platform: RunningPlatform, sandboxId: string, seen: Seen): Promise<boolean> {
  const sandbox = await reach(platform, sandboxId);
  // From outside, on a new connection, or with a command if nothing listens there.
  const now = (await askFromOutside(platform, sandboxId)) ?? (await ask(sandbox));
  expect(now.countOnDisk).toBeGreaterThanOrEqual(seen.countOnDisk);
  expect((await sandbox.commands.run(`tail -n 1 ${LINKED.other}`)).stdout).toBe(`${MARK}\n`);
  if (!now.alive) {
    expect(now).toMatchObject({ shm: false, disk: true });
    return false;
  }
  expect(now).toMatchObject({
    nonce: seen.nonce,
    pid: seen.pid,
    processes: [true, true],
    kept: { memory: true, shm: true, open: true, deleted: true },
    connection: true,
  });
  expect(now.count).toBeGreaterThanOrEqual(seen.count);
  // The agent still lists the process, and it keeps counting in both places.
  expect((await sandbox.commands.list()).map(({ pid }) => pid)).toContain(seen.pid);
  await waitUntil("it counts on", async () => {
    const later = await askFromOutside(platform, sandboxId);
    return later?.alive === true && later.count > now.count && later.countOnDisk > now.countOnDisk;
  });
  return true;
}

/** Asks the witness through the edge. Undefined if nothing listens. */
async function askFromOutside(platform: RunningPlatform, sandboxId: string): Promise<Testimony | undefined> {
  const headers = { "E2b-Sandbox-Id": sandboxId, "E2b-Sandbox-Port": String(PORT) };
  const response = await fetch(platform.edgeUrl, { headers });
  const text = await response.text();
  if (response.status === 502 && text.includes("port is not open")) return undefined;
  if (!response.ok) throw new Error(`the edge answered ${response.status}: ${text}`);
  return JSON.parse(text) as Testimony;
}

async function ask(sandbox: Sandbox): Promise<Testimony> {
  return JSON.parse((await sandbox.commands.run(`python3 ${PROGRAM} ask`)).stdout) as Testimony;
}

/** Sends no request that could wake the sandbox: the tests do that themselves, and check the response. */
function reach(platform: RunningPlatform, sandboxId: string): Promise<Sandbox> {
  return Sandbox.connect(sandboxId, { ...clientOf(platform), timeoutMs: 3_600_000 });
}

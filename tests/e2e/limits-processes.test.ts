// Limits on processes, CPUs and open files. Exceeding one causes an error inside the sandbox, and nothing else.

import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { type CommandExitError, Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

/** A sandbox with 512 MiB. */
const MOST_PROCESSES = 512;

const { EMFILE } = constants.errno;

/** Starts threads, which count too and use so little memory that this limit is reached first. Prints how many there were. */
const THREADS = `
import _thread, os, threading, time
threading.stack_size(65536)
count = 0
while True:
  try:
    _thread.start_new_thread(time.sleep, (1000,))
    count += 1
  except RuntimeError as error:
    print(count, flush=True)
    # The end of an interpreter ends its threads one by one, and their small stacks may not be enough for that.
    os._exit(0)
`;

/** A shell that gets no new process prints an error and exits. Its children keep running. */
const FILL = "sh -c 'n=0; while sleep 1000 </dev/null >/dev/null 2>&1 & do n=$((n + 1)); echo $n; done'";

const BOMB = "bomb() { bomb | bomb & }; bomb; sleep 1000";

const OPEN_FILES = `
import os, resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
count = 0
try:
  while True:
    os.open('/etc/hostname', 0)
    count += 1
except OSError as error:
  print(soft, hard, count, error.errno)
`;

/** Opens thousands of files that no other process has open. Each of them uses descriptors on the host. */
const OWN_FILES = `
import os, sys, time
os.makedirs(sys.argv[1])
try:
  for count in range(4000): os.open(sys.argv[1] + '/%d' % count, os.O_CREAT | os.O_RDWR)
except OSError as error: pass
time.sleep(1000)
`;

describe.each(runtimesFor("limits of processes and open files", "runc"))("a sandbox on %s", (runtime) => {
  let platform: Platform;
  let guest: Sandbox;
  let neighbour: Sandbox;
  let pids: number[];

  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    pids = platform.pids();
    [guest, neighbour] = await Promise.all([Sandbox.create(clientOf(platform)), Sandbox.create(clientOf(platform))]);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  afterEach(async () => {
    await expect.poll(() => guest.commands.run("echo well").then(({ stdout }) => stdout, String)).toBe("well\n");
    expect((await neighbour.commands.run("echo well")).stdout).toBe("well\n");
    expect(platform.pids()).toEqual(pids);
  });

  const python = (program: string, user: "user" | "root" = "user") =>
    guest.commands.run(`exec python3 -c "${program}"`, { user, timeoutMs: 180_000 }).then(({ stdout }) => stdout.trim());

  const countProcesses = async () => Number((await guest.commands.run("ls /proc | grep -c '^[0-9]'", { timeoutMs: 120_000 })).stdout);

  it("refuses threads beyond the limit", async () => {
    const count = Number(await python(THREADS));
    expect(count).toBeGreaterThan(MOST_PROCESSES - 128);
    expect(count).toBeLessThan(MOST_PROCESSES);
  });

  it("at its process limit keeps working: it serves requests, a fork fails, and a program that kills others can start", async () => {
    await guest.commands.run("exec python3 -m http.server 8000", { background: true, timeoutMs: 0 });
    const refused = (await guest.commands.run(FILL, { timeoutMs: 180_000 }).catch((error: unknown) => error)) as CommandExitError;
    expect(refused.stderr).toMatch(/fork/i);
    const started = Number(refused.stdout.trim().split("\n").at(-1));
    expect(started).toBeGreaterThan(MOST_PROCESSES - 128);
    expect(started).toBeLessThan(MOST_PROCESSES);
    const headers = { "E2b-Sandbox-Id": guest.sandboxId, "E2b-Sandbox-Port": "8000" };
    expect((await fetch(`${platform.edgeUrl}/`, { headers })).status).toBe(200);
    expect(await countProcesses()).toBeGreaterThan(started);
    await guest.commands.run("pkill -9 sleep", { timeoutMs: 180_000 });
    // The kernel ends hundreds of killed processes a moment later.
    await expect.poll(countProcesses).toBeLessThan(50);
    await guest.commands.run("pkill -9 python3");
  });

  it("with a fork bomb of any user can be rescued through the API", async () => {
    for (const user of ["user", "root"] as const) {
      await guest.commands.run(BOMB, { background: true, timeoutMs: 0, user });
      await sleep(3_000);
      expect((await neighbour.commands.run("echo well")).stdout).toBe("well\n");
      const saved = async () => {
        await guest.commands.run("kill -9 -1", { timeoutMs: 120_000, user }).catch(() => undefined);
        return countProcesses().catch(() => Number.POSITIVE_INFINITY);
      };
      await expect.poll(saved, { interval: 500 }).toBeLessThan(50);
    }
  });

  it("has a limit on open files, at which only the process that reaches it gets an error", async () => {
    const [soft, hard, count, errno] = (await python(OPEN_FILES)).split(" ").map(Number);
    expect(soft).toBe(hard);
    expect(errno).toBe(EMFILE);
    expect(count).toBeGreaterThan((soft ?? 0) - 20);
    expect(count).toBeLessThan(soft ?? 0);
    // All of them reach the limit at the same time: gVisor's kernel and the host support this too.
    const four = 'for n in 1 2 3 4; do python3 -c "$PROGRAM" & done; wait';
    const { stdout } = await guest.commands.run(four, {
      envs: { PROGRAM: `${OPEN_FILES}\nimport time; time.sleep(2)` },
      timeoutMs: 180_000,
    });
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ").at(-1)),
    ).toEqual(Array(4).fill(String(EMFILE)));
  });

  it("survives many processes with thousands of files each", async () => {
    const many = 'for n in $(seq 10); do python3 -c "$PROGRAM" files-$n & done; wait';
    await guest.commands.run(many, { envs: { PROGRAM: OWN_FILES }, background: true, timeoutMs: 0 });
    for (let second = 0; second < 8; second++) {
      await sleep(1_000);
      expect((await guest.commands.run("sh -c 'echo well'")).stdout).toBe("well\n");
    }
    await guest.commands.run("pkill -9 python3; rm -rf files-*");
  });
});

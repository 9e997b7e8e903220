// A sandbox that exceeds its memory loses the process that used it. Nothing else happens to it or to other sandboxes.

import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { type CommandHandle, Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const MIB = 1024 * 1024;
const KILLED = "signal: killed";

const HOGS = {
  "by copying, at full speed": "x = []\nwhile True: x.append(bytearray(b'x') * 16_000_000)",
  "by one huge mapping": "import mmap\nm = mmap.mmap(-1, 4 << 30)\nblock = b'x' * (8 << 20)\nwhile True: m.write(block)",
  "by one byte in each page": "import mmap\nm = mmap.mmap(-1, 4 << 30)\nfor at in range(0, 4 << 30, 4096): m[at] = 1",
} as const;

/**
 * A hundred processes that use 2 GB together, four times the limit. The survivors keep running. Each starts when the one before it runs:
 * how many a busy machine can start at once is not what is tested.
 */
const HUNDRED = `
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(100):
  read, write = os.pipe()
  if os.fork() == 0:
    os.write(write, b'.')
    x = []
    for k in range(20):
      x.append(bytearray(b'x') * 1_000_000)
      time.sleep(0.05)
    time.sleep(1000)
  os.close(write)
  os.read(read, 1)
  os.close(read)
print('started', flush=True)
time.sleep(1000)
`;

describe.each(runtimesFor("limits of memory"))("memory of a sandbox on %s", (runtime) => {
  let platform: Platform;
  let guest: Sandbox;
  let neighbour: Sandbox;
  /** A small process in the same sandbox that must survive. */
  let bystander: CommandHandle;
  let pids: number[];

  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    pids = platform.pids();
    [guest, neighbour] = await Promise.all([Sandbox.create(clientOf(platform)), Sandbox.create(clientOf(platform))]);
    bystander = await guest.commands.run("exec sleep 1000", { background: true, timeoutMs: 0 });
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  afterEach(async () => {
    expect((await guest.commands.run("echo well")).stdout).toBe("well\n");
    expect((await neighbour.commands.run("echo well")).stdout).toBe("well\n");
    expect((await guest.commands.list()).map(({ pid }) => pid)).toContain(bystander.pid);
    expect(platform.pids()).toEqual(pids);
  });

  /** Exit code and error of a Python program, as the client sees them. */
  async function outcomeOf(program: string, user: "user" | "root" = "user"): Promise<string> {
    return guest.commands.run(`exec python3 -c "${program}"`, { user, timeoutMs: 120_000 }).then(
      ({ stdout }) => stdout.trim(),
      (error: { error?: string }) => String(error.error),
    );
  }

  const logged = (message: string) =>
    platform
      .logs()
      .split("\n")
      .filter((line) => line.includes(message));

  it.each(Object.entries(HOGS))("that a process uses up %s costs only this process", async (_how, program) => {
    expect(await outcomeOf(program)).toBe(KILLED);
  });

  it("that a process of root uses up costs this process too, and the log names it", async () => {
    expect(await outcomeOf(HOGS["by copying, at full speed"], "root")).toBe(KILLED);
    const facts = logged("processes ended: their sandbox was over its memory").map(
      (line) => JSON.parse(line) as { sandbox_id: string; killed: { pid: number; command: string; bytes: number }[] },
    );
    const named = facts.filter((one) => one.sandbox_id === guest.sandboxId).flatMap((one) => one.killed);
    expect(named.length).toBeGreaterThan(0);
    for (const { command, pid, bytes } of named) {
      expect(command).toBe("python3");
      expect(pid).toBeGreaterThan(1);
      expect(bytes).toBeGreaterThan(300 * MIB);
    }
    // Its owner reads it in the log of the sandbox.
    const lines = async () => {
      const { body } = await callApi(platform, `/v2/sandboxes/${guest.sandboxId}/logs?level=warn`);
      return (body as { logs: { message: string; fields: { logger?: string } }[] }).logs;
    };
    const told = expect.objectContaining({
      message: expect.stringMatching(/^Ended, because the sandbox was over its memory: python3 \(\d+\)/),
    });
    await expect.poll(lines, { timeout: 60_000, interval: 500 }).toContainEqual(told);
  });

  it("that a hundred small processes use up costs some of them", async () => {
    const started = Promise.withResolvers<void>();
    const hogs = guest.commands.run(`exec python3 -c "${HUNDRED}"`, { timeoutMs: 0, onStdout: () => started.resolve() });
    await Promise.race([started.promise, hogs]);
    hogs.catch(() => undefined);
    const alive = async () => Number((await guest.commands.run("pgrep -c python3 || true", { timeoutMs: 120_000 })).stdout);
    await expect.poll(alive, { interval: 500 }).toBeLessThan(90);
    expect(await alive()).toBeGreaterThan(0);
    expect((await guest.commands.run("pkill -9 python3; true", { timeoutMs: 120_000 })).exitCode).toBe(0);
  });

  const FILE_MIB = scaled("MiB of a file that is larger than the memory of its sandbox", { sample: 1100, full: 2200 });
  it("does not include the page cache: a file several times as large can be written and read", async () => {
    // A separate sandbox, because the node learns up to a second later what the kernel has killed.
    const other = await Sandbox.create(clientOf(platform));
    const { stdout } = await other.commands.run(
      `dd if=/dev/zero of=large bs=1M count=${FILE_MIB} 2>/dev/null && cat large | wc -c && rm large`,
      {
        timeoutMs: 180_000,
      },
    );
    expect(stdout).toBe(`${FILE_MIB * MIB}\n`);
    expect(logged("ended").filter((line) => line.includes(other.sandboxId))).toEqual([]);
    await other.kill();
  });

  it("cannot be used up by files in memory: they get ENOSPC at half of it", async () => {
    const { stdout } = await guest.commands.run(
      "dd if=/dev/zero of=/dev/shm/large bs=1M count=1100 2>&1 | grep -o 'No space left on device'; stat -c %s /dev/shm/large; rm /dev/shm/large",
    );
    expect(stdout).toBe(`No space left on device\n${256 * MIB}\n`);
  });

  it("that is used up while the platform is down costs that process too, and is guarded again afterwards", async () => {
    const hog = `import time; time.sleep(1)\n${HOGS["by copying, at full speed"]}`;
    const started = Promise.withResolvers<void>();
    const unseen = guest.commands.run(`(sleep 2; python3 -c "${hog}"; echo $? > outcome) & echo started`, {
      onStdout: () => started.resolve(),
      timeoutMs: 0,
    });
    unseen.catch(() => undefined);
    await started.promise;
    await platform.stop();
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    await platform.start();
    pids = platform.pids();
    guest = await Sandbox.connect(guest.sandboxId, clientOf(platform));
    // 128 + the number of SIGKILL.
    await expect.poll(() => guest.files.read("outcome").catch(() => "")).toBe("137\n");
    expect(await outcomeOf(HOGS["by copying, at full speed"])).toBe(KILLED);
  });

  it("that is used up repeatedly is released each time", async () => {
    for (let round = 0; round < 3; round++) expect(await outcomeOf(HOGS["by copying, at full speed"])).toBe(KILLED);
    const headers = {
      "E2b-Sandbox-Id": guest.sandboxId,
      "E2b-Sandbox-Port": "49983",
      "X-Access-Token": (guest as unknown as { envdAccessToken: string }).envdAccessToken,
    };
    const used = async () => ((await (await fetch(`${platform.edgeUrl}/metrics`, { headers })).json()) as { mem_used: number }).mem_used;
    await expect.poll(used).toBeLessThan(200 * MIB);
  });
});

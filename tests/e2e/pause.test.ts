import { startPlatform } from "@skerry/testkit";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox, SandboxNotFoundError } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

/** Counts in memory, twenty times per second, and writes the count to a file that it opened at its start. */
const COUNTER = `
import os, time, socket
random = os.urandom(8).hex()
server = socket.create_server(("127.0.0.1", 4000))
out = open("/home/user/count", "w")
count = 0
while True:
    count += 1
    out.seek(0)
    out.write(f"{random} {count}\\n")
    out.flush()
    time.sleep(0.05)
`;

/** A pattern that does not match its own command line. */
const FIND_COUNTER = "pgrep -f '[p]ython3 counter' || true";

describe.each(runtimesFor("pause, snapshots and forks through the npm SDK"))(
  "pause, snapshots and forks through the npm SDK on %s",
  (runtime) => {
    let platform: SharedPlatform;
    let client: ReturnType<typeof clientOf>;
    const keepsMemory = runtime === "gvisor";
    beforeAll(async () => {
      platform = await sharedPlatform(runtime);
      client = clientOf(platform);
    });
    afterAll(() => platform?.[Symbol.asyncDispose]());

    /** Opens connections one after the other, which the server closes first. Prints how many took more than a second. */
    const CONNECT = `
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 4001))
def serve():
    while True: server.accept()[0].close()
threading.Thread(target=serve, daemon=True).start()
def connect(count):
    late = 0
    for _ in range(count):
        client = socket.socket()
        client.settimeout(1)
        try:
            client.connect(("127.0.0.1", 4001))
            client.recv(1)
        except TimeoutError: late += 1
        client.close()
    print(late, flush=True)
for line in sys.stdin: connect(int(line))
`;

    async function createCounting(): Promise<{ sandbox: Sandbox; random: string }> {
      const sandbox = await Sandbox.create({ ...client, envs: { COLOUR: "grey" }, metadata: { a: "b" }, timeoutMs: 3_600_000 });
      await sandbox.files.write("counter.py", COUNTER);
      await sandbox.commands.run("python3 counter.py", { background: true, timeoutMs: 0 });
      await waitUntil("it counts", async () => (await sandbox.files.exists("count")) && (await read(sandbox)).count > 3);
      return { sandbox, random: (await read(sandbox)).random };
    }

    async function read(sandbox: Sandbox): Promise<{ random: string; count: number }> {
      const [random = "", count = "0"] = (await sandbox.files.read("count")).trim().split(" ");
      return { random, count: Number(count) };
    }

    /** Checks that the counter continues with its memory, file and port, or that all processes are new. */
    async function expectRestored(sandbox: Sandbox, before: { random: string; count: number }): Promise<void> {
      const running = (await sandbox.commands.run(FIND_COUNTER)).stdout.trim() !== "";
      expect(running).toBe(keepsMemory);
      expect((await sandbox.files.read("counter.py")).length).toBe(COUNTER.length);
      expect((await read(sandbox)).random).toBe(before.random);
      if (!keepsMemory) return;
      await waitUntil("it counts on", async () => (await read(sandbox)).count > before.count);
      expect((await sandbox.commands.run("echo $COLOUR; ss -ltn | grep -c :4000")).stdout).toBe("grey\n1\n");
    }

    if (keepsMemory) {
      it("connections after a resume are not delayed by those that were closed before it", async () => {
        const sandbox = await Sandbox.create({ ...client, timeoutMs: 3_600_000 });
        await sandbox.files.write("connect.py", CONNECT);
        const { pid } = await sandbox.commands.run("python3 connect.py > late", { background: true, stdin: true, timeoutMs: 0 });
        const late = async () => (await sandbox.files.read("late")).trim().split("\n");
        await sandbox.commands.sendStdin(pid, "4000\n");
        await expect.poll(late).toEqual(["0"]);
        await sandbox.pause();
        await sandbox.connect();
        await sandbox.commands.sendStdin(pid, "1000\n");
        await expect.poll(late, { timeout: 120_000 }).toHaveLength(2);
        expect(await late()).toEqual(["0", "0"]);
        await sandbox.kill();
      });
    }

    it("a paused sandbox uses nothing, and is resumed unchanged, repeatedly", async () => {
      const { sandbox } = await createCounting();
      const token = (await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).body as { envdAccessToken: string };
      for (let round = 0; round < 3; round += 1) {
        const before = await read(sandbox);
        expect(await sandbox.pause()).toBe(true);
        expect(await sandbox.pause()).toBe(false);
        const info = await sandbox.getInfo();
        expect(info).toMatchObject({ state: "paused", metadata: { a: "b" } });
        const detail = (await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).body;
        expect(detail).toMatchObject({ pauseMode: keepsMemory ? "full" : "filesystem", envdAccessToken: token.envdAccessToken });
        const again = await Sandbox.connect(sandbox.sandboxId, client);
        await expectRestored(again, before);
        expect((await again.getInfo()).state).toBe("running");
        if (!keepsMemory) break;
      }
      if (keepsMemory) {
        const [{ pid = 0 } = {}] = await sandbox.commands.list();
        const counting = await sandbox.commands.connect(pid);
        expect(await sandbox.commands.kill(pid)).toBe(true);
        await expect(counting.wait()).rejects.toMatchObject({ exitCode: -1, error: "signal: killed" });
      }
      await sandbox.kill();
      await expect(Sandbox.connect(sandbox.sandboxId, client)).rejects.toThrow(SandboxNotFoundError);
    });

    it("is paused and resumed by many clients at once", async () => {
      const { sandbox } = await createCounting();
      const paused = await Promise.all([1, 2, 3, 4].map(() => sandbox.pause()));
      expect(paused).toContain(true);
      const connected = await Promise.all([1, 2, 3, 4].map(() => Sandbox.connect(sandbox.sandboxId, client)));
      for (const each of connected) expect((await each.commands.run("echo up")).stdout).toBe("up\n");
      const [, again] = await Promise.all([sandbox.pause(), Sandbox.connect(sandbox.sandboxId, client)]);
      expect((await again.commands.run("echo up")).stdout).toBe("up\n");
      await Promise.all([sandbox.pause().catch(() => {}), sandbox.kill()]);
      expect((await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).status).toBe(404);
    });

    it("keeps only the disk on request", async () => {
      const { sandbox, random } = await createCounting();
      await sandbox.pause({ keepMemory: false });
      const again = await Sandbox.connect(sandbox.sandboxId, client);
      expect((await again.commands.run(FIND_COUNTER)).stdout).toBe("");
      expect((await read(again)).random).toBe(random);
      await again.files.write("after", "x");
      await again.pause();
      const rebooted = await Sandbox.connect(sandbox.sandboxId, { ...client, onResume: "reboot" });
      expect(await rebooted.files.read("after")).toBe("x");
      await rebooted.kill();
    });

    it("is paused at its timeout on request", async () => {
      const sandbox = await Sandbox.create({ ...client, timeoutMs: 3_600_000, lifecycle: { onTimeout: "pause" } });
      await sandbox.files.write("kept", "x");
      await sandbox.setTimeout(500);
      const detail = async () => (await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).body as { pauseMode?: string };
      await waitUntil("it is paused", async () => (await detail()).pauseMode !== undefined);
      const list = Sandbox.list({ ...client, query: { state: ["paused"] } });
      expect((await list.nextItems()).map(({ sandboxId }) => sandboxId)).toContain(sandbox.sandboxId);
      const again = await Sandbox.connect(sandbox.sandboxId, client);
      expect(await again.files.read("kept")).toBe("x");
      await again.pause();
      expect(await Sandbox.kill(sandbox.sandboxId, client)).toBe(true);
      expect(await Sandbox.kill(sandbox.sandboxId, client)).toBe(false);
    });

    it("sandboxes start from snapshots, also after the source has ended", async () => {
      const { sandbox } = await createCounting();
      const before = await read(sandbox);
      const snapshot = await sandbox.createSnapshot({ name: "counting" });
      expect(snapshot).toMatchObject({ snapshotId: `${platform.teamSlug}/counting:default` });
      await waitUntil("it counts on", async () => (await read(sandbox)).count > before.count + 2);
      const first = await Sandbox.create(snapshot.snapshotId, { ...client, envs: { SIZE: "small" } });
      await expectRestored(first, before);
      expect((await first.commands.run("echo $SIZE")).stdout).toBe("small\n");
      await first.files.write("mine", "1");
      await sandbox.kill();
      const second = await Sandbox.create("counting", client);
      await expectRestored(second, before);
      expect(await second.files.exists("mine")).toBe(false);
      expect(first.sandboxId).not.toBe(second.sandboxId);
      const listed = await Sandbox.listSnapshots({ ...client, name: "counting" }).nextItems();
      expect(listed.map(({ snapshotId }) => snapshotId)).toEqual([snapshot.snapshotId]);
      await Promise.all([first.kill(), second.kill()]);
      expect(await Sandbox.deleteSnapshot(snapshot.snapshotId, client)).toBe(true);
      expect(await Sandbox.deleteSnapshot(snapshot.snapshotId, client)).toBe(false);
      await expect(Sandbox.create("counting", client)).rejects.toThrow(/404/);
    });

    it("forks of a running and of a paused sandbox are independent", async () => {
      const { sandbox } = await createCounting();
      for (const state of ["running", "paused"] as const) {
        const before = await read(sandbox);
        if (state === "paused") await sandbox.pause();
        const forks = await sandbox.fork({ count: 3, timeoutMs: 60_000 });
        expect(forks).toHaveLength(3);
        const up = forks.filter((fork): fork is Sandbox => fork instanceof Sandbox);
        expect(up).toHaveLength(3);
        expect(new Set([sandbox.sandboxId, ...up.map(({ sandboxId }) => sandboxId)]).size).toBe(4);
        for (const [n, fork] of up.entries()) {
          await expectRestored(fork, before);
          await fork.files.write("mine", String(n));
        }
        for (const [n, fork] of up.entries()) expect(await fork.files.read("mine")).toBe(String(n));
        expect((await sandbox.getInfo()).state).toBe(state);
        await Promise.all(up.map((fork) => fork.kill()));
      }
      const again = await Sandbox.connect(sandbox.sandboxId, client);
      expect(await again.files.exists("mine")).toBe(false);
      await again.kill();
    });

    it("reports when and why a sandbox ended, and leaves nothing over", async () => {
      const sandbox = await Sandbox.create(client);
      await sandbox.pause();
      await sandbox.kill();
      const { status, body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}`);
      expect(status).toBe(404);
      expect(body).toMatchObject({ message: expect.stringMatching(/^Sandbox ".*" doesn't exist .* It ended at 20.*Z: request$/) });
      expect((await Sandbox.list(client).nextItems()).length).toBe(0);
    });
  },
);

const ROUNDS = scaled("kills of a platform that pauses and resumes", { sample: 1, full: 6 });

it("survives a kill of all processes during pauses and resumes", async () => {
  await using platform = await startPlatform();
  const client = clientOf(platform);
  const sandboxes = await Promise.all([0, 1, 2, 3].map(() => Sandbox.create({ ...client, timeoutMs: 3_600_000 })));
  for (const [n, sandbox] of sandboxes.entries()) await sandbox.files.write("kept", String(n));
  for (let round = 0; round < ROUNDS; round += 1) {
    const pauses = sandboxes.map((sandbox) => sandbox.pause().catch(() => false));
    await new Promise((resolve) => setTimeout(resolve, 40 * round));
    await platform.kill9();
    await Promise.all(pauses);
    await platform.start();
    for (const [n, sandbox] of sandboxes.entries()) {
      const again = await Sandbox.connect(sandbox.sandboxId, client);
      expect(await again.files.read("kept")).toBe(String(n));
    }
  }
  await Promise.all(sandboxes.map((sandbox) => sandbox.kill()));
  expect(await Sandbox.list(client).nextItems()).toEqual([]);
});

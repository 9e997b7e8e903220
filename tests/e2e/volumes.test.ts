// Programs of the official SDKs share volumes between sandboxes, through pause, fork and snapshots.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { testCacheDir } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox, Volume } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

/** Appends a line to a file of the volume that it opened at its start, for each line that it reads. */
const APPENDER = `
import sys
out = open("/mnt/v/appended", "a", buffering=1)
for line in open("/home/user/pipe"):
    out.write(line)
`;

describe.each(["gvisor", "runc"] as const)("volumes on %s", (runtime) => {
  let platform: SharedPlatform;
  let client: ReturnType<typeof clientOf>;
  let at: { apiUrl: string };
  const keepsMemory = runtime === "gvisor";
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    client = clientOf(platform);
    at = { apiUrl: platform.apiUrl };
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const create = async (sizeMB?: number) => {
    const name = `v-${crypto.randomUUID()}`;
    const made = await callApi(platform, "/volumes", { body: { name, ...(sizeMB ? { sizeMB } : {}) } });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return await Volume.connect((made.body as { volumeID: string }).volumeID, client);
  };
  const start = (volume: Volume, options: object = {}) => Sandbox.create({ ...client, volumeMounts: { "/mnt/v": volume }, ...options });
  const run = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command)).stdout;

  it("two sandboxes share one, through pause, resume, fork and snapshots", async () => {
    const volume = await create();
    const [one, two] = await Promise.all([start(volume), start(volume)]);
    await run(one, "mkdir /mnt/v/d && echo from-one > /mnt/v/d/f");
    expect(await run(two, "cat /mnt/v/d/f")).toBe("from-one\n");
    await run(two, "echo from-two >> /mnt/v/d/f");
    expect(await run(one, "cat /mnt/v/d/f")).toBe("from-one\nfrom-two\n");
    expect(await volume.readFile("/d/f", at)).toBe("from-one\nfrom-two\n");
    await volume.writeFile("/outside", "written outside", at);
    expect(await run(one, "cat /mnt/v/outside")).toBe("written outside");
    expect(await run(one, "stat -c %U:%a /mnt/v/outside")).toBe("user:644\n");

    await one.files.write("appender.py", APPENDER);
    await run(one, "mkfifo pipe");
    const appender = await one.commands.run("sleep 1000 > pipe & exec python3 -u appender.py", { background: true, timeoutMs: 0 });
    await one.commands.run("echo before > pipe");
    await waitUntil(
      "the line is in the volume",
      async () => (await volume.exists("/appended", at)) && (await volume.readFile("/appended", at)) === "before\n",
    );
    await one.pause();
    expect((await Sandbox.getInfo(one.sandboxId, client)).volumeMounts).toEqual([{ name: volume.name, path: "/mnt/v" }]);
    await run(two, "echo while-paused > /mnt/v/d/g");
    const resumed = await Sandbox.connect(one.sandboxId, client);
    expect(await run(resumed, "cat /mnt/v/d/g")).toBe("while-paused\n");
    expect((await resumed.commands.list()).some(({ pid }) => pid === appender.pid)).toBe(keepsMemory);
    if (keepsMemory) {
      await resumed.commands.run("echo after > pipe");
      await waitUntil("the open file was written", async () => (await volume.readFile("/appended", at)) === "before\nafter\n");
    }

    const [forked] = (await callApi(platform, `/sandboxes/${two.sandboxId}/fork`, { body: { timeout: 600 } })).body as [
      { sandbox: { sandboxID: string } },
    ];
    const fork = await Sandbox.connect(forked.sandbox.sandboxID, client);
    await run(fork, "echo from-fork > /mnt/v/d/h");
    expect(await run(resumed, "cat /mnt/v/d/h")).toBe("from-fork\n");
    const { snapshotId } = await two.createSnapshot();
    const copy = await Sandbox.create(snapshotId, client);
    expect(await run(copy, "cat /mnt/v/d/h")).toBe("from-fork\n");

    const refused = await callApi(platform, `/volumes/${volume.volumeId}`, { method: "DELETE" });
    expect(refused).toMatchObject({ status: 409, body: { error_code: "volume_mounted" } });
    await Promise.all([one, two, fork, copy].map((sandbox) => sandbox.kill()));
    expect(await Volume.destroy(volume.volumeId, client)).toBe(true);
    await expect(Sandbox.create(snapshotId, client)).rejects.toThrow(/volume '.*' not found/);
    await Sandbox.deleteSnapshot(snapshotId, client);
  });

  it("a full one gives ENOSPC inside and 507 outside, and its sandbox keeps running", async () => {
    const volume = await create(32);
    const sandbox = await start(volume);
    const filled = await run(sandbox, "dd if=/dev/zero of=/mnt/v/fill bs=1M count=64 2>&1 || true");
    expect(filled).toContain("No space left on device");
    await expect(volume.writeFile("/more", new Uint8Array(16 * 1024 * 1024).buffer, at)).rejects.toThrow(/^507: /);
    expect(await volume.exists("/more", at)).toBe(false);
    await run(sandbox, "rm /mnt/v/fill");
    await volume.writeFile("/more", "fits", at);
    expect(await run(sandbox, "cat /mnt/v/more && echo ok > /tmp/x")).toBe("fits");
    await sandbox.kill();
    await Volume.destroy(volume.volumeId, client);
  });

  it("one that is deleted by force leaves its sandboxes running", async () => {
    const volume = await create();
    const [running, paused] = await Promise.all([start(volume), start(volume)]);
    await paused.pause();
    const deleted = await callApi(platform, `/volumes/${volume.volumeId}?force=true`, { method: "DELETE" });
    expect(deleted.status).toBe(204);
    expect(await run(running, "echo still here")).toBe("still here\n");
    const resumed = await Sandbox.connect(paused.sandboxId, client);
    expect(await run(resumed, "ls /mnt/v; echo booted")).toBe("booted\n");
    await Promise.all([running, resumed].map((sandbox) => sandbox.kill()));
  });
});

it.each(runtimesFor("volumes with the SDK from PyPI", "runc"))("the official PyPI SDK uses volumes on %s", async (runtime) => {
  await using platform = await sharedPlatform(runtime);
  const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
  if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
  const { stdout } = await runCommand(join(testCacheDir(), environment, "bin/python"), [join(import.meta.dirname, "volumes.py")], {
    env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
    timeoutMs: 120_000,
  });
  expect(stdout).toBe("all well\n");
});

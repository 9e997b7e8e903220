// `./skerry backup` of a platform in use, and `restore` into an empty data folder, which becomes a second platform.

import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { writeProcessRecord } from "@skerry/setup/folder";
import { createTestDataFolder, freePorts, testCacheDir } from "@skerry/testkit";
import { itInFullRuns, runtimesFor } from "@skerry/testkit/depth";
import { createRunFolder } from "@skerry/testkit/run-folder";
import { createPostgresDatabase } from "@skerry/testkit/run-services";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { Sandbox, Volume } from "e2b";
import { afterEach, describe, expect, it } from "vitest";

const PATIENCE_MS = 200_000;

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Its platform is taken down after the test. */
function skerryOn(data: string, env?: Readonly<Record<string, string>>): SkerryCommand {
  const skerry = new SkerryCommand(data, { limitMs: PATIENCE_MS, ...(env && { env }) });
  cleanUps.push(async () => {
    await skerry.run("down");
    rmSync(data, { recursive: true, force: true });
  });
  return skerry;
}

/** A folder for SKERRY_VOLUMES. */
const volumesFolder = async () => {
  const dir = await createRunFolder("t-volumes");
  cleanUps.push(async () => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, "volumes"));
  return join(dir, "volumes");
};
const upOn = async (skerry: SkerryCommand, runtime: string) => {
  const [api = 0, edge = 0] = await freePorts(2);
  await skerry.run("up", "--detach", "--runtime", runtime, "--api-port", String(api), "--edge-port", String(edge));
};
const emptyFolder = (name: string) => mkdtempSync(join(testCacheDir(), "runs", `t-${name}-`));
/** Restores into a new data folder, and names the folder's owner as soon as the folder need not be empty any more. */
async function restoredFrom(file: string, variables?: Readonly<Record<string, string>>): Promise<SkerryCommand> {
  const data = emptyFolder("restored");
  const skerry = skerryOn(data, variables);
  await skerry.run("restore", file);
  await writeProcessRecord(join(data, "owner.json"), process.pid);
  return skerry;
}

describe.each(runtimesFor("backup and restore", "gvisor"))("a backup on %s", (runtime) => {
  it("has paused sandboxes, snapshots and keys, and leaves out what changes while it is taken", async () => {
    const first = skerryOn((await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`)).root);
    await upOn(first, runtime);
    const client = await first.client();
    const paused = await Sandbox.create({ ...client, metadata: { name: "kept" } });
    await paused.files.write("kept.txt", "of the paused one");
    await paused.commands.run("sudo ln kept.txt linked.txt; sleep 1000 > /dev/null 2>&1 & echo $! > pid");
    const { snapshotId } = await paused.createSnapshot();
    await paused.files.write("later.txt", "after the snapshot");
    await paused.pause();
    const busy = await Sandbox.create(client);
    await busy.pause();
    const volume = await Volume.create("kept", client);
    const content = { apiUrl: client.apiUrl };
    await volume.writeFile("/by-api", "of the caller", content);
    const mounting = await Sandbox.create({ ...client, volumeMounts: { "/mnt/v": volume } });
    await mounting.commands.run("echo of the sandbox > /mnt/v/by-sandbox && ln -s by-api /mnt/v/link && chmod 640 /mnt/v/by-sandbox");
    const restless = await Volume.create("restless", client);
    const writing = await Sandbox.create({ ...client, volumeMounts: { "/mnt/v": restless } });
    // A copy of the volume takes much longer than the time between two of the writes, however busy the machine is.
    await writing.commands.run("head -c 300M /dev/urandom > /mnt/v/large && sync /mnt/v/large");
    const write = "import os; f = os.open('/mnt/v/f', os.O_CREAT | os.O_RDWR)\nwhile True: os.pwrite(f, b'x' * 4096, 0); os.fsync(f)";
    for (let at = 0; at < 3; at += 1) await writing.commands.run(`python3 -c "${write}"`, { background: true, timeoutMs: 0 });
    // Is resumed and paused all the time, so that its copy cannot be trusted.
    let isOver = false;
    const disturbing = (async () => {
      for (let round = 0; !isOver; round++) {
        await busy.connect();
        await busy.files.write(`file-${round}`, "x".repeat(1_000_000));
        await busy.pause();
      }
    })();
    const dir = await createRunFolder("t-backup");
    cleanUps.push(async () => rmSync(dir, { recursive: true, force: true }));
    const file = join(dir, "skerry.tar");
    const { stderr, stdout } = await first.run("backup", file);
    isOver = true;
    await disturbing;
    expect(stderr).toMatch(/[12] paused sandboxes, 1 snapshots/);
    expect(stdout).toContain(file);
    expect(stdout).toContain(`1 volumes were written to all the time and are not in it: ${restless.volumeId}`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir).sort()).toEqual(["owner.json", "skerry.tar"]);
    await expect(first.run("backup", file)).rejects.toThrow("exists already");
    await first.run("down");

    const second = await restoredFrom(file);
    await upOn(second, runtime);
    const restored = await second.client();
    expect(restored.apiKey).toBe(client.apiKey);
    const again = await Sandbox.connect(paused.sandboxId, restored);
    expect((await again.getInfo()).metadata).toEqual({ name: "kept" });
    expect(await again.files.read("kept.txt")).toBe("of the paused one");
    expect(await again.files.read("later.txt")).toBe("after the snapshot");
    const look = await again.commands.run("stat -c %h kept.txt; kill -0 $(cat pid) 2>/dev/null && echo alive || echo gone");
    expect(look.stdout).toBe(runtime === "gvisor" ? "2\nalive\n" : "2\ngone\n");
    const started = await Sandbox.create(snapshotId, restored);
    expect(await started.files.exists("later.txt")).toBe(false);
    expect(await started.files.read("kept.txt")).toBe("of the paused one");
    const there = { apiUrl: restored.apiUrl };
    const kept = await Volume.connect(volume.volumeId, restored);
    expect(await kept.readFile("/by-api", there)).toBe("of the caller");
    const mountingAgain = await Sandbox.create({ ...restored, volumeMounts: { "/mnt/v": kept } });
    const { stdout: seen } = await mountingAgain.commands.run("cat /mnt/v/link /mnt/v/by-sandbox; stat -c '%a %U' /mnt/v/by-sandbox");
    expect(seen).toBe("of the callerof the sandbox\n640 user\n");
    // The sandbox that was in use is either whole or gone.
    const whole = await Sandbox.connect(busy.sandboxId, restored).catch(() => undefined);
    const rounds = (await whole?.files.list("."))?.filter(({ name }) => name.startsWith("file-")) ?? [];
    for (const { name } of rounds) expect((await whole?.files.read(name))?.length).toBe(1_000_000);
  });
});

itInFullRuns("a restore fills an empty database of PostgreSQL, and refuses damaged files and folders in use", async () => {
  const database = await createPostgresDatabase({ migrated: true });
  cleanUps.push(async () => await database[Symbol.asyncDispose]());
  const first = skerryOn((await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`)).root, {
    SKERRY_DATABASE_URL: database.url,
    SKERRY_VOLUMES: await volumesFolder(),
  });
  await upOn(first, "gvisor");
  const volume = await Volume.create("elsewhere", await first.client());
  await volume.writeFile("/f", "of the first", { apiUrl: (await first.client()).apiUrl });
  const { sandboxId, ...sandbox } = await Sandbox.create(await first.client());
  expect(sandbox).toBeDefined();
  await Sandbox.pause(sandboxId, await first.client());
  const dir = await createRunFolder("t-backup");
  cleanUps.push(async () => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "skerry.tar");
  await first.run("backup", file);
  await first.run("down");

  const used = emptyFolder("used");
  cleanUps.push(async () => rmSync(used, { recursive: true, force: true }));
  mkdirSync(join(used, "somebody's"));
  await expect(new SkerryCommand(used).run("restore", file)).rejects.toThrow("is not empty");
  const cut = join(dir, "cut.tar");
  await runCommand("cp", [file, cut]);
  truncateSync(cut, statSync(file).size - 200_000);
  const other = emptyFolder("cut");
  await expect(new SkerryCommand(other, { limitMs: PATIENCE_MS }).run("restore", cut)).rejects.toThrow();
  expect(readdirSync(other)).toEqual([]);
  rmSync(other, { recursive: true });

  const empty = await createPostgresDatabase({ migrated: false });
  cleanUps.push(async () => await empty[Symbol.asyncDispose]());
  const elsewhere = await volumesFolder();
  const second = await restoredFrom(file, { SKERRY_DATABASE_URL: empty.url, SKERRY_VOLUMES: elsewhere });
  await upOn(second, "gvisor");
  expect((await Sandbox.getInfo(sandboxId, await second.client())).state).toBe("paused");
  const connected = await Sandbox.connect(sandboxId, await second.client());
  expect((await connected.commands.run("echo here")).stdout).toBe("here\n");
  const restored = await second.client();
  expect(await (await Volume.connect(volume.volumeId, restored)).readFile("/f", { apiUrl: restored.apiUrl })).toBe("of the first");
  expect(readdirSync(elsewhere)).toContain(volume.volumeId);
  // The end of the platform is the end of its volumes, and of nothing else in their folder.
  writeFileSync(join(elsewhere, "somebody's"), "");
  await second.run("down", "--purge");
  expect(readdirSync(elsewhere)).toEqual(["somebody's"]);
});

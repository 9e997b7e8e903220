// A data folder with sandboxes of an earlier version: what the documented upgrade does with them, and what going back does.

import { randomBytes } from "node:crypto";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { DataFolder } from "@skerry/setup/folder";
import { createTestDataFolder, freePorts, prepareTestCache, startPlatform, untilNothingIsLeft } from "@skerry/testkit";
import { itInFullRuns, runtimesFor } from "@skerry/testkit/depth";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EarlierCheckout, prepareEarlierCheckout } from "./upgrade/earlier-checkout.ts";

const EARLIER = "5ac9c5ef8069c819cee44a482a44a51d409693d4";
/** Time limit of the earlier checkout's first installation of packages. */
const PREPARATION_LIMIT_MS = 600_000;

/** Counts in memory and writes the count to a file, which shows whether it continued or was lost. */
const COUNT = "for i in $(seq 1000000); do echo $i > next; mv next count; sleep 0.1; done";

let earlier: EarlierCheckout;
beforeAll(async () => {
  earlier = await prepareEarlierCheckout(EARLIER);
}, PREPARATION_LIMIT_MS);

describe.each(runtimesFor("upgrades"))("sandboxes on %s that an earlier version left", (runtime) => {
  const keepsMemory = runtime === "gvisor";
  let folder: DataFolder;
  let ports: string[];
  let client: { apiKey: string; apiUrl: string; sandboxUrl: string };
  /** The count of each sandbox before the platform was replaced. */
  const counts = new Map<string, number>();
  let running: Sandbox;
  let paused: Sandbox;
  let pausedLater: Sandbox;
  let snapshotId: string;

  beforeAll(async () => {
    folder = await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`);
    const [api = 0, edge = 0] = await freePorts(2);
    ports = ["--api-port", String(api), "--edge-port", String(edge)];
    expect(await withEarlier("up", "--detach", "--runtime", runtime, ...ports)).toMatchObject({ exitCode: 0 });
    const { apiKey } = JSON.parse(readFileSync(folder.secretsFile, "utf8")) as { apiKey: string };
    client = { apiKey, apiUrl: `http://127.0.0.1:${api}`, sandboxUrl: `http://127.0.0.1:${edge}` };
  });
  afterAll(async () => {
    expect(await new SkerryCommand(folder.root).answer("down")).toMatchObject({ exitCode: 0 });
    expect(await untilNothingIsLeft(folder.root)).toEqual([]);
    rmSync(folder.root, { recursive: true });
  });

  async function withEarlier(...args: string[]) {
    await earlier.acceptBaseTemplate(folder.templateFile);
    return await new SkerryCommand(folder.root, { command: earlier.command }).answer(...args);
  }
  async function withThis(env: Record<string, string>, ...args: string[]) {
    copyFileSync((await prepareTestCache()).templateFile, folder.templateFile);
    return await new SkerryCommand(folder.root, { env }).answer(...args);
  }

  const countOf = async (sandbox: Sandbox) => Number(await sandbox.files.read("count"));
  async function countingSandbox(name: string): Promise<Sandbox> {
    const sandbox = await Sandbox.create({ ...client, allowInternetAccess: false, envs: { NAME: name }, timeoutMs: 3_600_000 });
    await sandbox.files.write("name", name);
    await sandbox.commands.run(COUNT, { background: true, timeoutMs: 0 });
    await waitUntil(`${name} counts`, async () => (await countOf(sandbox).catch(() => 0)) > 3, 60_000);
    return sandbox;
  }
  const remember = async (sandbox: Sandbox) => counts.set(sandbox.sandboxId, await countOf(sandbox));

  /** Checks the sandbox's files and environment, and with memory also that its process continues to count. */
  async function expectWhole(sandbox: Sandbox, name: string, { from, memory }: { from: number; memory: boolean }): Promise<void> {
    expect(await sandbox.files.read("name")).toBe(name);
    expect((await sandbox.commands.run("echo $NAME")).stdout).toBe(`${name}\n`);
    expect(await countOf(sandbox)).toBeGreaterThanOrEqual(from);
    if (memory) await waitUntil(`${name} counts on`, async () => (await countOf(sandbox)) > from + 3, 60_000);
    const blocked = await sandbox.commands.run("curl -sm 2 http://1.1.1.1 || echo blocked");
    expect(blocked.stdout).toBe("blocked\n");
  }
  const rememberedOf = (sandbox: Sandbox) => counts.get(sandbox.sandboxId) ?? 0;
  const connect = (sandbox: Sandbox) => Sandbox.connect(sandbox.sandboxId, { ...client, timeoutMs: 3_600_000 });

  test("are running, paused and in snapshots", async () => {
    running = await countingSandbox("running");
    paused = await countingSandbox("paused");
    pausedLater = await countingSandbox("paused later");
    const source = await countingSandbox("source");
    const countBefore = await countOf(source);
    ({ snapshotId } = await source.createSnapshot());
    counts.set(snapshotId, countBefore);
    await source.kill();
    for (const sandbox of [running, paused, pausedLater]) await remember(sandbox);
    await paused.pause();
    await pausedLater.pause();
  });

  itInFullRuns("go on with the earlier version after an upgrade that did not start", async () => {
    const { exitCode, stderr } = await withThis({ SKERRY_DNS: "no address" }, "restart");
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("./skerry restart from the previous checkout");
    expect(await withEarlier("restart")).toMatchObject({ exitCode: 0 });
    await expectWhole(await connect(running), "running", { from: rememberedOf(running), memory: true });
    await remember(running);
  });

  test("are used by this version: the running one, the paused one, the snapshot, and forks", async () => {
    expect(await withThis({}, "restart")).toMatchObject({ exitCode: 0 });
    running = await connect(running);
    await expectWhole(running, "running", { from: rememberedOf(running), memory: true });
    paused = await connect(paused);
    await expectWhole(paused, "paused", { from: rememberedOf(paused), memory: keepsMemory });
    const fromSnapshot = await Sandbox.create(snapshotId, { ...client, allowInternetAccess: false });
    await expectWhole(fromSnapshot, "source", { from: counts.get(snapshotId) ?? 0, memory: keepsMemory });
    const [fork] = await running.fork();
    if (!(fork instanceof Sandbox)) throw new Error("there is no fork", { cause: fork });
    await expectWhole(fork, "running", { from: rememberedOf(running), memory: keepsMemory });
    await fork.kill();
    await fromSnapshot.kill();
    for (const sandbox of [running, paused]) await remember(sandbox);
    await paused.pause();
  });

  test("are refused by the earlier version afterwards, which touches none of them", async () => {
    const { exitCode, stderr } = await withEarlier("restart");
    expect(exitCode).not.toBe(0);
    expect(stderr).toMatch(/EISDIR.*node\/lock/s);
    // In the words of that commit.
    expect(stderr).toContain("./skerry restart from the checkout of before");
    expect(await withThis({}, "restart")).toMatchObject({ exitCode: 0 });
    await expectWhole(await connect(running), "running", { from: rememberedOf(running), memory: true });
    for (const [sandbox, name] of [
      [paused, "paused"],
      [pausedLater, "paused later"],
    ] as const) {
      await expectWhole(await connect(sandbox), name, { from: rememberedOf(sandbox), memory: keepsMemory });
    }
  });
});

test("a version that does not know the tables of the database refuses to start before its node changes anything", async () => {
  await using platform = await startPlatform();
  const sandbox = await Sandbox.create({ apiKey: platform.secrets.apiKey, apiUrl: platform.apiUrl, sandboxUrl: platform.edgeUrl });
  await sandbox.files.write("kept", "yes");
  await platform.stop();
  const before = platform.logs().length;
  const inDatabase = (statement: string) => {
    const database = new DatabaseSync(join(platform.dataDir, "skerry.db"));
    database.exec(statement);
    database.close();
  };
  inDatabase("insert into kysely_migration (name, timestamp) values ('999-later', '2030-01-01')");
  await expect(platform.start()).rejects.toThrow(/newer version of the platform \(999-later\).*start that version/s);
  expect(platform.logs().slice(before)).not.toContain("sandbox adopted");
  inDatabase("delete from kysely_migration where name = '999-later'");
  await platform.start();
  expect(await sandbox.files.read("kept")).toBe("yes");
  await sandbox.kill();
});

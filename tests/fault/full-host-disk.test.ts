// The disk of the data folder is full, because of a sandbox or another program. The platform keeps running, kills free space, other
// sandboxes lose nothing, and an operator can take the platform down and up again.

import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { unmountBelow } from "@skerry/test-runner";
import { createTestDataFolder, freePorts } from "@skerry/testkit";
import { sampleOf } from "@skerry/testkit/depth";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { freeBytesOf, leaveFree } from "@skerry/testkit/small-disk";
import { Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

const MIB = 1024 * 1024;
const ENV = {
  SKERRY_POOL_SIZE: "0",
  SKERRY_READY_SLOTS: "2",
  SKERRY_DISK_LIMIT: "file",
};

let data: string;
let ports: string[];
let client: { apiKey: string; apiUrl: string; sandboxUrl: string; domain: string };
const fillers: string[] = [];

const skerry = (...args: string[]) => new SkerryCommand(data, { env: ENV }).answer(...args);

const upDetached = () => skerry("up", "--detach", ...ports);
const pidOf = () => (JSON.parse(readFileSync(join(data, "skerry.pid"), "utf8")) as { pid: number }).pid;
const hasReserve = () => existsSync(join(data, "node/reserve"));

function areaOf(sandboxId: string): string {
  const images = readdirSync(join(data, "node/images")).map(
    (name) =>
      JSON.parse(readFileSync(join(data, "node/images", name, "image.json"), "utf8")) as {
        local: { area?: string };
        identity: { sandboxId: string };
      },
  );
  return join(data, "node/areas", images.find(({ identity }) => identity.sandboxId === sandboxId)?.local.area ?? "");
}

/** Fills the disk from outside, so that no sandbox is to blame. */
async function fillUp(leaving = 0): Promise<void> {
  const filler = join(data, `filler-${fillers.length}`);
  fillers.push(filler);
  await leaveFree(filler, leaving);
}
async function makeRoom(): Promise<void> {
  await runCommand("sh", ["-c", `rm -f ${data}/filler-*`]);
}

async function call(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
  const response = await fetch(client.apiUrl + path, {
    method,
    headers: { "X-API-Key": client.apiKey, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

beforeAll(async () => {
  data = (await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`, { diskMb: 2048 })).root;
  const [api = 0, edge = 0] = await freePorts(2);
  ports = ["--api-port", String(api), "--edge-port", String(edge)];
  const { exitCode, stderr } = await upDetached();
  expect(exitCode, stderr).toBe(0);
  const { apiKey } = JSON.parse(readFileSync(join(data, "secrets.json"), "utf8")) as { apiKey: string };
  client = { apiKey, apiUrl: `http://127.0.0.1:${api}`, sandboxUrl: `http://127.0.0.1:${edge}`, domain: `localhost:${edge}` };
});
afterEach(makeRoom);
afterAll(async () => {
  const { exitCode, stderr } = await skerry("down");
  expect(exitCode, stderr).toBe(0);
  await unmountBelow(data);
  rmSync(data, { recursive: true, force: true });
});

const FULL = { status: 503, text: expect.stringMatching(/^\{"code":503,"message":"The disk of the machine is full/) };

it("on a disk without a free byte, kills free space and other operations are refused; then everything works again", async () => {
  const [one, two, three] = await Promise.all([Sandbox.create(client), Sandbox.create(client), Sandbox.create(client)]);
  await one.commands.run("echo kept > file; sync file; echo memory > /dev/shm/file");
  await two.commands.run("head -c 50000000 /dev/urandom > file; sync file");
  const pid = pidOf();
  await expect.poll(hasReserve).toBe(true);
  await fillUp();
  // The reserve for this case is used up too, and so is the space that the platform frees in the meantime.
  await expect.poll(hasReserve).toBe(false);
  await expect.poll(() => fillUp().then(() => freeBytesOf(data))).toBe(0);
  expect(await call("POST", "/v2/sandboxes", { templateID: "base" })).toMatchObject({
    status: 503,
    text: expect.not.stringMatching(/ENOSPC/),
  });
  expect(await call("POST", `/sandboxes/${one.sandboxId}/pause`)).toEqual(FULL);
  expect(await call("POST", `/sandboxes/${one.sandboxId}/snapshots`, {})).toMatchObject({
    status: 503,
    text: expect.stringContaining("not enough free disk space"),
  });
  expect((await one.commands.run("cat file /dev/shm/file")).stdout).toBe("kept\nmemory\n");
  expect(await call("DELETE", `/sandboxes/${two.sandboxId}`)).toMatchObject({ status: 204 });
  await expect.poll(() => freeBytesOf(data)).toBeGreaterThan(40 * MIB);
  await fillUp();
  expect(await call("DELETE", `/sandboxes/${three.sandboxId}`)).toMatchObject({ status: 204 });
  await makeRoom();
  await expect.poll(hasReserve).toBe(true);
  expect(pidOf()).toBe(pid);
  await one.commands.run("head -c 1000000 /dev/urandom > more; sync more");
  expect(await call("POST", `/sandboxes/${one.sandboxId}/pause`)).toMatchObject({ status: 204 });
  const resumed = await Sandbox.connect(one.sandboxId, client);
  expect((await resumed.commands.run("cat file /dev/shm/file")).stdout).toBe("kept\nmemory\n");
  await (await Sandbox.create(client)).kill();
});

it("an operator takes the platform down and up while the disk is full, and its sandboxes through a restart", async () => {
  const running = await Sandbox.create(client);
  await running.commands.run("echo kept > file; sync file");
  const paused = await Sandbox.create(client);
  await paused.commands.run("echo kept > file");
  await paused.pause();
  // The platform itself does this some seconds later.
  await runCommand("sh", ["-c", `sync --file-system ${areaOf(paused.sandboxId)}/fs`]);
  await fillUp();
  await expect.poll(hasReserve).toBe(false);
  const restarted = await skerry("restart");
  expect(restarted.stderr).toMatch(/no room for another sandbox/);
  expect(restarted.exitCode, restarted.stderr).toBe(0);
  expect((await running.commands.run("cat file")).stdout).toBe("kept\n");
  await fillUp();
  const downed = await skerry("down");
  expect(downed.exitCode, downed.stderr).toBe(0);
  await fillUp(2 * MIB);
  const upped = await upDetached();
  expect(upped.exitCode, upped.stderr).toBe(0);
  expect(upped.stderr).toMatch(/no room for another sandbox/);
  await makeRoom();
  const resumed = await Sandbox.connect(paused.sandboxId, client);
  expect((await resumed.commands.run("cat file")).stdout).toBe("kept\n");
});

const WITH_MEMORY = "with its memory";
const WAYS = sampleOf(
  "ways of being paused for the disk",
  [WITH_MEMORY, "without its memory, for which there is no room"],
  (_, at) => at === 0,
);

it.each(WAYS)(
  "a sandbox that fills the disk is paused %s before others are harmed, and can be resumed when there is space",
  async (way) => {
    const hasMemory = way === WITH_MEMORY;
    const [hog, neighbour] = await Promise.all([Sandbox.create(client), Sandbox.create(client)]);
    await hog.commands.run(`echo kept > file; head -c ${hasMemory ? 1 : 250 * MIB} /dev/urandom > /dev/shm/file`);
    const writing = "while echo line >> file && sync file; do sleep 0.05; done; echo failed > /dev/shm/failed";
    await neighbour.commands.run(writing, { background: true, timeoutMs: 0 });
    const linesOf = async () => Number((await neighbour.commands.run("wc -l < file")).stdout);
    await fillUp(700 * MIB);
    // Slowly enough for any machine: whether there is room for the memory must not depend on how soon a busy one freezes the sandbox.
    const filling = "echo $$ > pid; while head -c 2000000 /dev/zero; do :; done > big";
    await hog.commands.run(filling, { background: true, timeoutMs: 0 });
    const detail = async () => JSON.parse((await call("GET", `/sandboxes/${hog.sandboxId}`)).text) as object;
    const pauseMode = hasMemory ? "full" : "filesystem";
    await expect.poll(detail).toMatchObject({ state: "paused", pauseReason: "disk", pauseMode, keptUntil: expect.any(String) });
    expect(freeBytesOf(data)).toBeGreaterThan(128 * MIB);
    const before = await linesOf();
    await expect.poll(linesOf).toBeGreaterThan(before + 5);
    expect((await neighbour.commands.run("ls /dev/shm; touch other")).stdout).not.toContain("failed");
    expect(await call("POST", `/sandboxes/${hog.sandboxId}/connect`, { timeout: 60 })).toEqual(FULL);
    expect(await detail()).toMatchObject({ state: "paused", pauseReason: "disk" });
    await makeRoom();
    const resumed = await Sandbox.connect(hog.sandboxId, client);
    expect((await resumed.commands.run("cat file; ls /dev/shm; kill $(cat pid); true")).stdout).toBe(hasMemory ? "kept\nfile\n" : "kept\n");
    expect(await detail()).not.toHaveProperty("pauseReason");
    await Promise.all([hog.kill(), neighbour.kill()]);
  },
);

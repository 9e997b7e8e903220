// Kills all processes of the platform at random moments of a pause, a resume, a snapshot, a fork or a kill, and of requests with a key.
// Afterwards everything that was acknowledged exists, everything can be killed, and nothing is left on the host (the platform checks this
// at its end).

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";

let platform: Platform;
let client: ReturnType<typeof clientOf>;
beforeAll(async () => {
  platform = await startPlatform();
  client = clientOf(platform);
});
afterAll(() => platform?.[Symbol.asyncDispose]());

const DELAYS_MS = sampleOf("moments at which the platform is killed", [0, 30, 60, 150], (delayMs) => delayMs === 60);

/** Kills all processes while `work` runs, and starts them again. */
async function killDuring(delayMs: number, work: Promise<unknown>): Promise<unknown> {
  const done = work.catch((error: unknown) => error);
  await sleep(delayMs);
  await platform.kill9();
  const outcome = await done;
  await platform.start();
  return outcome;
}

async function createMarked(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ ...client, timeoutMs: 600_000 });
  await sandbox.files.write("kept", sandbox.sandboxId);
  return sandbox;
}

async function expectUsable(sandboxId: string): Promise<void> {
  const sandbox = await Sandbox.connect(sandboxId, client);
  expect(await sandbox.files.read("kept")).toBe(sandboxId);
  expect((await sandbox.commands.run("echo up")).stdout).toBe("up\n");
}

it.each(DELAYS_MS)("in a pause, a resume or a kill, after %s ms", async (delayMs) => {
  const sandbox = await createMarked();
  await killDuring(delayMs, sandbox.pause());
  await expectUsable(sandbox.sandboxId);
  expect(await sandbox.pause()).toBe(true);
  await killDuring(delayMs, Sandbox.connect(sandbox.sandboxId, client));
  await expectUsable(sandbox.sandboxId);
  await sandbox.pause();
  await killDuring(delayMs, sandbox.kill());
  await sandbox.kill();
  await waitUntil("it is gone", async () => (await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).status === 404);
});

it.each(DELAYS_MS)("in a snapshot or a fork, after %s ms", async (delayMs) => {
  const sandbox = await createMarked();
  await killDuring(delayMs, sandbox.createSnapshot({ name: `at-${delayMs}` }));
  await expectUsable(sandbox.sandboxId);
  const listed = async () => (await Sandbox.listSnapshots({ ...client, sandboxId: sandbox.sandboxId }).nextItems()).length;
  // Acknowledged or not: the list contains it if and only if it can be used.
  if ((await listed()) === 1) await (await Sandbox.create(`at-${delayMs}`, client)).kill();
  await killDuring(delayMs, sandbox.fork({ count: 2 }));
  await expectUsable(sandbox.sandboxId);
  for (const { sandboxId } of await Sandbox.list(client).nextItems()) await Sandbox.kill(sandboxId, client);
  for (const { snapshotId } of await Sandbox.listSnapshots(client).nextItems()) await Sandbox.deleteSnapshot(snapshotId, client);
  expect(await Sandbox.list(client).nextItems()).toEqual([]);
});

it.each(["snapshots", "fork"])(
  "in %s, when the image is complete and the sandbox is not back: it comes back with its memory",
  async (what) => {
    const sandbox = await createMarked();
    const { pid } = await sandbox.commands.run("sleep 100000", { background: true, timeoutMs: 0 });
    const sizeMib = 50;
    await sandbox.commands.run(`head -c ${sizeMib}M /dev/urandom > /dev/shm/memory && sha256sum /dev/shm/memory > /home/user/sum`);
    const images = join(platform.dataDir, "node/images");
    const complete = () => readdirSync(images).some((imageId) => existsSync(join(images, imageId, "image.json")));
    const asked = callApi(platform, `/sandboxes/${sandbox.sandboxId}/${what}`, { body: {} }).catch(() => undefined);
    await waitUntil("the image is complete", complete);
    // The control plane restarts too. It finds an image without a row, and deletes it.
    await platform.kill9();
    await asked;
    await platform.start();
    const again = await Sandbox.connect(sandbox.sandboxId, client);
    expect((await again.commands.list()).map((one) => one.pid)).toContain(pid);
    expect((await again.commands.run("sha256sum --check /home/user/sum")).stdout).toBe("/dev/shm/memory: OK\n");
    await waitUntil("the image is deleted", () => readdirSync(images).length === 0);
    await again.kill();
  },
);

it.each(DELAYS_MS)("in a create with a key that is sent again: there is one sandbox, after %s ms", async (delayMs) => {
  const create = () =>
    callApi(platform, "/v2/sandboxes", { body: { templateID: "base" }, headers: { "Idempotency-Key": `create-${delayMs}` } });
  await killDuring(delayMs, create());
  const [first, second] = [await create(), await create()];
  expect(first.status).toBe(201);
  expect(second.body).toEqual(first.body);
  const { sandboxID } = first.body as { sandboxID: string };
  await waitUntil(
    "there is one",
    async () => (await Sandbox.list(client).nextItems()).map(({ sandboxId }) => sandboxId).join() === sandboxID,
  );
  expect((await (await Sandbox.connect(sandboxID, client)).commands.run("echo up")).stdout).toBe("up\n");
  await Sandbox.kill(sandboxID, client);
});

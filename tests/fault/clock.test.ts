// The host's clock is set back and forward again while sandboxes run, are paused and reach their timeouts. Everything that was
// acknowledged exists and can be used, and nothing is left on the host (the platform checks this at its end).

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";

const HOUR_MS = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), "skerry-clock-"));
const offsetFile = join(folder, "offset");

/** A separate clock for the platform, because changing the machine's clock would affect all programs. */
const SHIFTED_DATE = `
import { readFileSync } from "node:fs";
const RealDate = Date;
const offset = () => Number(readFileSync(${JSON.stringify(offsetFile)}, "utf8"));
globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + offset());
    else super(...args);
  }
  static now() {
    return RealDate.now() + offset();
  }
};
`;

let platform: Platform;
let client: ReturnType<typeof clientOf>;
const setClock = (offsetMs: number) => writeFileSync(offsetFile, String(offsetMs));

beforeAll(async () => {
  setClock(0);
  writeFileSync(join(folder, "clock.mjs"), SHIFTED_DATE);
  platform = await startPlatform({ env: { NODE_OPTIONS: `--import=${join(folder, "clock.mjs")}` } });
  client = clientOf(platform);
});
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function withProcess(): Promise<{ sandbox: Sandbox; pid: number }> {
  const sandbox = await Sandbox.create({ ...client, timeoutMs: HOUR_MS });
  const { pid } = await sandbox.commands.run("sleep 100000", { background: true, timeoutMs: 0 });
  return { sandbox, pid };
}

async function expectRunning({ sandbox, pid }: { sandbox: Sandbox; pid: number }): Promise<void> {
  const connected = await Sandbox.connect(sandbox.sandboxId, { ...client, timeoutMs: HOUR_MS });
  expect((await connected.commands.list()).map((one) => one.pid)).toContain(pid);
}

it("sandboxes that were paused, snapshotted or running before still exist, also for a platform that starts afterwards", async () => {
  const [running, paused, source] = [await withProcess(), await withProcess(), await withProcess()];
  await paused.sandbox.pause();
  const { snapshotId } = await source.sandbox.createSnapshot();
  setClock(-HOUR_MS);
  await expectRunning(running);
  await expectRunning(paused);
  await paused.sandbox.pause();
  const made = await Sandbox.create(snapshotId, client);
  await expectRunning({ sandbox: made, pid: source.pid });
  await platform.kill9();
  setClock(-2 * HOUR_MS);
  await platform.start();
  for (const one of [running, paused, source, { sandbox: made, pid: source.pid }]) {
    await expectRunning(one);
    await one.sandbox.kill();
    expect((await callApi(platform, `/sandboxes/${one.sandbox.sandboxId}`)).status).toBe(404);
  }
  await Sandbox.deleteSnapshot(snapshotId, client);
  expect(await Sandbox.list(client).nextItems()).toEqual([]);
  setClock(0);
});

it("a new sandbox ends at its timeout, and an older one when the clock is right again", async () => {
  const before = await Sandbox.create({ ...client, timeoutMs: 15_000 });
  setClock(-HOUR_MS);
  const after = await Sandbox.create({ ...client, timeoutMs: 3_000 });
  const isGone = async ({ sandboxId }: Sandbox) => (await callApi(platform, `/sandboxes/${sandboxId}`)).status === 404;
  await waitUntil("the new one is gone", () => isGone(after));
  expect(await isGone(before)).toBe(false);
  setClock(60_000);
  await waitUntil("the old one is gone", () => isGone(before));
  setClock(0);
});

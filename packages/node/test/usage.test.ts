import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { runtimesFor } from "@skerry/testkit/depth";
import { AGENT_PORT } from "@skerry/wire";
import { Process } from "@skerry/wire/process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";

const MIB = 1024 * 1024;
const LIMIT = { timeout: 60_000, interval: 200 };

describe.each(runtimesFor("what a node's sandboxes use"))("what a node's sandboxes use, on %s", (runtime) => {
  let under: NodeUnderTest;
  const [busy, idle] = [`i${"a".repeat(20)}`, `i${"b".repeat(20)}`];
  beforeAll(async () => {
    under = await startNode(runtime);
    for (const sandboxId of [busy, idle]) await under.client.createSandbox({ spec: under.spec(sandboxId) });
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  async function run(sandboxId: string, command: string): Promise<void> {
    const record = JSON.parse(readFileSync(join(under.config.dir, "sandboxes", sandboxId, "sandbox.json"), "utf8"));
    const transport = createConnectTransport({ baseUrl: `http://${record.slot.addresses.guest}:${AGENT_PORT}`, httpVersion: "1.1" });
    const headers = { "X-Access-Token": "a-token", Authorization: `Basic ${Buffer.from("root:").toString("base64")}` };
    const events = createClient(Process, transport).start({ process: { cmd: "/bin/sh", args: ["-c", command] } }, { headers });
    await events[Symbol.asyncIterator]().next();
  }

  /** The newest measurement of a sandbox among the rounds after a time. */
  async function newest(sandboxId: string, afterMs = 0) {
    for (let after = BigInt(afterMs), found: Awaited<ReturnType<typeof rounds>>[number]["sandboxes"][number] | undefined; ; ) {
      const some = await rounds(after);
      for (const { sandboxes } of some) found = sandboxes.find((one) => one.sandboxId === sandboxId) ?? found;
      const last = some.at(-1);
      if (!last) return found;
      after = last.atMs;
    }
  }

  const rounds = async (afterMs: bigint) => (await under.client.readUsage({ afterMs })).rounds;

  it("is measured from the start, without a zero, and of each sandbox alone", async () => {
    await expect.poll(() => newest(idle), LIMIT).toMatchObject({ cpuCount: 1, memoryTotalBytes: BigInt(256 * MIB) });
    const first = await newest(idle);
    expect(first?.cpuPercent).toBeGreaterThan(0);
    expect(Number(first?.memoryUsedBytes)).toBeGreaterThan(MIB);
    expect(Number(first?.diskUsedBytes)).toBeGreaterThan(0);
    expect(Number(first?.diskTotalBytes)).toBeGreaterThan(48 * MIB);
    expect(Number(first?.diskTotalBytes)).toBeLessThan(80 * MIB);
    await run(busy, "while :; do :; done");
    await expect.poll(async () => (await newest(busy))?.cpuPercent, LIMIT).toBeGreaterThan(20);
    // Its first measurements contain its start.
    await expect.poll(async () => (await newest(idle))?.cpuPercent, LIMIT).toBeLessThan(20);
  });

  it("sees files on the disk", async () => {
    const before = Number((await newest(idle))?.diskUsedBytes);
    await run(idle, "head -c 20000000 /dev/zero > /file; sync; sleep 1000");
    await expect.poll(async () => Number((await newest(idle))?.diskUsedBytes) - before, LIMIT).toBeGreaterThan(18_000_000);
  });

  it("goes on after a snapshot, and ends at a pause", async () => {
    await under.client.snapshotSandbox({ sandboxId: idle, imageId: "s".repeat(20), memory: true });
    const after = Date.now();
    await expect.poll(async () => (await newest(idle, after))?.cpuPercent, LIMIT).toBeGreaterThan(0);
    await under.client.pauseSandbox({ sandboxId: idle, imageId: "p".repeat(20), memory: true });
    const paused = Date.now();
    await expect.poll(() => newest(busy, paused), LIMIT).toBeDefined();
    expect(await newest(idle, paused)).toBeUndefined();
  });
});

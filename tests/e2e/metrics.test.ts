import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const MIB = 1024 * 1024;

interface Metrics {
  readonly ts: number;
  readonly cpu_count: number;
  readonly cpu_used_pct: number;
  readonly mem_total: number;
  readonly mem_total_mib: number;
  readonly mem_used: number;
  readonly mem_used_mib: number;
  readonly mem_cache: number;
  readonly disk_total: number;
  readonly disk_used: number;
}

describe.each(["gvisor", "runc"] as const)("an agent's metrics on %s", (runtime) => {
  let platform: SharedPlatform;
  let id: string;
  let token: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    const { body } = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 3_600 } });
    ({ sandboxID: id, envdAccessToken: token } = body as { sandboxID: string; envdAccessToken: string });
    sandbox = await Sandbox.connect(id, clientOf(platform));
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  async function metrics(): Promise<Metrics> {
    const headers = { "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "49983", "X-Access-Token": token };
    const response = await fetch(`${platform.edgeUrl}/metrics`, { headers });
    expect(response.headers.get("cache-control")).toBe("no-store");
    return (await response.json()) as Metrics;
  }

  /** CPU usage since the previous call, while `command` runs. */
  async function cpuWhile(command: string): Promise<number> {
    const load = await sandbox.commands.run(command, { background: true });
    await new Promise((resolve) => setTimeout(resolve, 300));
    await metrics();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const { cpu_used_pct } = await metrics();
    await load.kill();
    return cpu_used_pct;
  }

  it("report the size of the sandbox, not of the host", async () => {
    const before = Date.now() / 1000;
    const { cpu_count, mem_total, mem_total_mib, ts } = await metrics();
    expect({ cpu_count, mem_total, mem_total_mib }).toEqual({ cpu_count: 2, mem_total: 512 * MIB, mem_total_mib: 512 });
    expect(ts).toBeGreaterThan(before - 5);
    expect(ts).toBeLessThan(Date.now() / 1000 + 5);
  });

  it("report the CPU time of the sandbox, whatever the host does", async () => {
    expect(await cpuWhile("sleep 30")).toBeLessThan(15);
    // One of two CPUs. Other programs on this machine may use most of it for a while.
    let most = 0;
    const busy = async () => {
      const used = await cpuWhile("while :; do :; done");
      most = Math.max(most, used);
      return used;
    };
    await expect.poll(busy).toBeGreaterThan(20);
    expect(most).toBeLessThan(70);
  });

  it("report the memory that the sandbox uses, and its release", async () => {
    const before = await metrics();
    expect(before.mem_used).toBeGreaterThan(5 * MIB);
    expect(before.mem_used).toBeLessThan(150 * MIB);
    expect(before.mem_used_mib).toBe(Math.floor(before.mem_used / MIB));
    const holder = await sandbox.commands.run(
      "exec python3 -c 'import sys; x = bytearray(b\"x\") * 150_000_000; print(1, flush=True); sys.stdin.read()'",
      {
        background: true,
        stdin: true,
      },
    );
    const held = () => metrics().then(({ mem_used }) => mem_used - before.mem_used);
    await expect.poll(held).toBeGreaterThan(130 * MIB);
    expect(await held()).toBeLessThan(220 * MIB);
    await holder.kill();
    await expect.poll(held).toBeLessThan(40 * MIB);
  });

  it("do not count files as used memory", async () => {
    const before = await metrics();
    await sandbox.commands.run("head -c 100000000 /dev/zero > /tmp/file && cat /tmp/file > /dev/null");
    const after = await metrics();
    expect(after.mem_used - before.mem_used).toBeLessThan(40 * MIB);
    await sandbox.commands.run("rm /tmp/file");
  });

  it("report the sandbox's own disk", async () => {
    const { disk_total, disk_used } = await metrics();
    expect(disk_total / MIB).toBeGreaterThanOrEqual(10_240);
    expect(disk_total / MIB).toBeLessThan(10_250);
    expect(disk_used).toBeGreaterThan(0);
    expect(disk_used).toBeLessThan(100 * MIB);
    const { stdout } = await sandbox.commands.run("df --block-size=1 --output=size / | tail -1");
    expect(Number(stdout)).toBe(disk_total);
  });
});

// A sandbox that ends without a request is paused with its files, and responses say why.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { agentProcesses } from "@skerry/testkit/agent-processes";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

interface SandboxRecord {
  readonly sandboxId: string;
  readonly cgroupPath: string;
  readonly process: { readonly pid: number };
}

describe.each(runtimesFor("ends without a request"))("ends without a request, on %s", (runtime) => {
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  /** The container of a sandbox from the pool has another name. */
  const recordOf = (id: string) => {
    const dir = join(platform.dataDir, "node/sandboxes");
    const records = readdirSync(dir).map((name) => JSON.parse(readFileSync(join(dir, name, "sandbox.json"), "utf8")) as SandboxRecord);
    const record = records.find(({ sandboxId }) => sandboxId === id);
    if (!record) throw new Error(`the node has no record of ${id}`);
    return record;
  };
  const detailOf = async (id: string) => (await callApi(platform, `/sandboxes/${id}`)).body as { state?: string; keptUntil?: string };
  const kept = async (id: string, reason: string) => {
    await expect.poll(() => detailOf(id), { interval: 100 }).toMatchObject({ state: "paused", pauseReason: reason });
    expect(await detailOf(id)).toMatchObject({ pauseMode: "filesystem" });
    const response = await fetch(`${platform.edgeUrl}/health`, { headers: { "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "49983" } });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ state: "paused" });
  };
  /** Checks that the sandbox boots from its files, and that the response says what was lost. */
  const goesOn = async (sandbox: Sandbox, why: RegExp) => {
    const { sandboxId } = sandbox;
    const connected = await callApi(platform, `/sandboxes/${sandboxId}/connect`, { body: { timeout: 300 } });
    expect(connected.status).toBe(201);
    expect(connected.headers.get("Skerry-Memory-Lost")).toMatch(why);
    expect(await sandbox.files.read("kept")).toBe(sandboxId);
    expect(await detailOf(sandboxId)).not.toHaveProperty("pauseReason");
  };
  const create = async (options: { lifecycle?: { onTimeout: "pause" } } = {}) => {
    const sandbox = await Sandbox.create({ ...clientOf(platform), ...options });
    await sandbox.files.write("kept", sandbox.sandboxId);
    return sandbox;
  };

  it("its runtime was killed", async () => {
    const sandbox = await create();
    const { sandboxId } = sandbox;
    process.kill(recordOf(sandboxId).process.pid, "SIGKILL");
    await kept(sandboxId, "exited");
    const { keptUntil = "" } = await detailOf(sandboxId);
    expect(Date.parse(keptUntil)).toBeGreaterThan(Date.now() + 6 * 24 * 3_600_000);
    expect((await Sandbox.list(clientOf(platform)).nextItems()).map((one) => [one.sandboxId, one.state])).toContainEqual([
      sandboxId,
      "paused",
    ]);
    await goesOn(sandbox, /runtime ended/);
    await sandbox.kill();
  });

  it("its runtime was killed, and the sandbox was to be paused at its timeout", async () => {
    const sandbox = await create({ lifecycle: { onTimeout: "pause" } });
    process.kill(recordOf(sandbox.sandboxId).process.pid, "SIGKILL");
    await kept(sandbox.sandboxId, "exited");
    expect(await detailOf(sandbox.sandboxId)).not.toHaveProperty("keptUntil");
    await sandbox.kill();
    expect((await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).status).toBe(404);
  });

  it("its runtime was killed while it was being paused", async () => {
    const sandbox = await create();
    const { process: first, cgroupPath } = recordOf(sandbox.sandboxId);
    // The sandbox is frozen before its end, so its agent does not respond and the pause must find out.
    for (const pid of agentProcesses(cgroupPath)) process.kill(pid, "SIGSTOP");
    const pausing = callApi(platform, `/sandboxes/${sandbox.sandboxId}/pause`, { body: {} });
    await expect.poll(() => detailOf(sandbox.sandboxId)).toMatchObject({ state: "paused" });
    process.kill(first.pid, "SIGKILL");
    const paused = await pausing;
    expect(paused.status).toBe(204);
    expect(paused.headers.get("Skerry-Memory-Lost")).toMatch(/./);
    await goesOn(sandbox, /./);
    await sandbox.kill();
  });

  it.each(["TERM", "INT"])("the guest's root ended the sandbox with SIG%s: it is not kept", async (signal) => {
    const { sandboxId, commands } = await create();
    await commands.run(`kill -${signal} 1`, { user: "root" }).catch(() => {});
    const answer = async () => (await callApi(platform, `/sandboxes/${sandboxId}`)) as { status: number; body: { message: string } };
    // The API does not find it as soon as its end begins. The time and the reason are known when the end is over.
    await expect.poll(async () => (await answer()).body.message, { interval: 100 }).toMatch(/It ended at .*: exited$/);
    expect((await answer()).status).toBe(404);
    const response = await fetch(`${platform.edgeUrl}/health`, { headers: { "E2b-Sandbox-Id": sandboxId, "E2b-Sandbox-Port": "49983" } });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ state: "ended", endReason: "exited" });
  });

  it("it exceeded its memory, and the agent could not free any", async () => {
    const sandbox = await create();
    const { sandboxId } = sandbox;
    const { cgroupPath } = recordOf(sandboxId);
    const agents = agentProcesses(cgroupPath);
    expect(agents.length).toBeGreaterThan(0);
    // Between the sandbox's limit (512 + 128 MiB) and the limit of the kernel.
    await sandbox.commands.run("sleep 1; exec dd if=/dev/zero of=/dev/null bs=670M count=1000000", { background: true, timeoutMs: 0 });
    for (const pid of agents) process.kill(pid, "SIGSTOP");
    await kept(sandboxId, "memory");
    await goesOn(sandbox, /ran out of memory/);
    await sandbox.kill();
  });
});

// A sandbox that ends though nobody asked for it: whoever looks for it afterwards is told when and why.

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

describe.each(runtimesFor("ends that nobody asked for"))("ends that nobody asked for, on %s", (runtime) => {
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  /** Its container has another name where it came from the pool. */
  const recordOf = (id: string) => {
    const dir = join(platform.dataDir, "node/sandboxes");
    const records = readdirSync(dir).map((name) => JSON.parse(readFileSync(join(dir, name, "sandbox.json"), "utf8")) as SandboxRecord);
    const record = records.find(({ sandboxId }) => sandboxId === id);
    if (!record) throw new Error(`the node has no record of ${id}`);
    return record;
  };
  /** What `GET` of it says once it has ended, and the refusal at the edge. */
  async function obituary(id: string): Promise<{ message: string; refusal: object }> {
    // It is not found as soon as its end begins; when and why is known once that is over.
    const answer = async () => (await callApi(platform, `/sandboxes/${id}`)) as { status: number; body: { message: string } };
    await expect.poll(async () => (await answer()).body.message, { timeout: 60_000, interval: 100 }).toMatch(/It ended at/);
    const {
      status,
      body: { message },
    } = await answer();
    expect(status).toBe(404);
    const response = await fetch(`${platform.edgeUrl}/health`, { headers: { "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "49983" } });
    expect(response.status).toBe(502);
    return { message, refusal: (await response.json()) as object };
  }

  it("it exited", async () => {
    const { sandboxId } = await Sandbox.create(clientOf(platform));
    process.kill(recordOf(sandboxId).process.pid, "SIGKILL");
    const { message, refusal } = await obituary(sandboxId);
    expect(message).toMatch(/It ended at .*: exited$/);
    expect(refusal).toMatchObject({ state: "ended", endReason: "exited" });
  });

  it("it took more memory than it may have, and could not be helped", async () => {
    const sandbox = await Sandbox.create(clientOf(platform));
    const { sandboxId } = sandbox;
    const { cgroupPath } = recordOf(sandboxId);
    const agents = agentProcesses(cgroupPath);
    expect(agents.length).toBeGreaterThan(0);
    // Between what it may have (512 and 128 MiB) and the kernel's own limit.
    await sandbox.commands.run("sleep 1; exec dd if=/dev/zero of=/dev/null bs=670M count=1000000", { background: true, timeoutMs: 0 });
    for (const pid of agents) process.kill(pid, "SIGSTOP");
    const { message, refusal } = await obituary(sandboxId);
    expect(message).toMatch(/It ended at .*: memory$/);
    expect(refusal).toMatchObject({ state: "ended", endReason: "memory" });
  });
});

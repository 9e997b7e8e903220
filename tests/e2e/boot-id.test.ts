// /proc/sys/kernel/random/boot_id: to programs a new id means that their machine has booted (docs/lifecycle.md).

import { readFileSync } from "node:fs";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const FILE = "/proc/sys/kernel/random/boot_id";
const HOST_ID = readFileSync(FILE, "utf8").trim();

const bootIdOf = async (sandbox: Sandbox) => (await sandbox.commands.run(`cat ${FILE}`)).stdout.trim();

describe.each(runtimesFor("boot ids", "runc"))("on %s", (runtime) => {
  const keepsMemory = runtime === "gvisor";
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  async function pauseAndResume(sandbox: Sandbox, memory: boolean): Promise<void> {
    await callApi(platform, `/sandboxes/${sandbox.sandboxId}/pause`, { body: { memory } });
    await Sandbox.connect(sandbox.sandboxId, clientOf(platform));
  }

  it("a boot has a new id, and a resume with memory keeps it", async () => {
    const sandbox = await Sandbox.create(clientOf(platform));
    const first = await bootIdOf(sandbox);
    await pauseAndResume(sandbox, true);
    const second = await bootIdOf(sandbox);
    expect(second === first).toBe(keepsMemory);
    await pauseAndResume(sandbox, false);
    expect([first, second, HOST_ID, ""]).not.toContain(await bootIdOf(sandbox));
    await sandbox.kill();
  });

  it("a fork has the id of its source only where it has the memory of its source", async () => {
    const source = await Sandbox.create(clientOf(platform));
    const before = await bootIdOf(source);
    const { body } = await callApi(platform, `/sandboxes/${source.sandboxId}/fork`, { body: { timeout: 3_600 } });
    const [made] = body as { sandbox: { sandboxID: string } }[];
    const fork = await Sandbox.connect(made?.sandbox.sandboxID ?? "", clientOf(platform));
    expect(await bootIdOf(source)).toBe(before);
    expect((await bootIdOf(fork)) === before).toBe(keepsMemory);
    for (const sandbox of [source, fork]) await sandbox.kill();
  });

  it("sandboxes of one template share an id only where they were restored from one image, and never the host's", async () => {
    const sandboxes = [await Sandbox.create(clientOf(platform)), await Sandbox.create(clientOf(platform))];
    const ids = await Promise.all(sandboxes.map(bootIdOf));
    expect(ids).not.toContain(HOST_ID);
    if (!keepsMemory) expect(new Set(ids).size).toBe(2);
    for (const sandbox of sandboxes) await sandbox.kill();
  });
});

// What sandboxes use, over the platform API, as the official clients read it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { prepareE2bCli, preparePythonSdk } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const LIMIT = { timeout: 60_000, interval: 250 };
const folder = mkdtempSync(join(tmpdir(), "skerry-observe-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(runtimesFor("metrics over the API", "gvisor"))("metrics over the API on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    sandbox = await Sandbox.create(clientOf(platform));
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  it("are read with the SDK for JavaScript, and none is zero", async () => {
    await expect.poll(() => sandbox.getMetrics(), LIMIT).not.toEqual([]);
    for (const metric of await sandbox.getMetrics()) {
      for (const name of ["cpuCount", "cpuUsedPct", "memUsed", "memTotal", "diskUsed", "diskTotal"] as const) {
        expect(metric[name], name).toBeGreaterThan(0);
      }
    }
    const { body } = await callApi(platform, `/sandboxes/metrics?sandbox_ids=${sandbox.sandboxId}`);
    expect(body).toMatchObject({ sandboxes: { [sandbox.sandboxId]: { cpuCount: 2, memTotal: 512 * 2 ** 20 } } });
    // A range without measurements.
    expect(await sandbox.getMetrics({ start: new Date(0), end: new Date(1_000) })).toEqual([]);
  });

  it("are read with the SDK from PyPI", async () => {
    const { stdout } = await runCommand(await preparePythonSdk(), [join(import.meta.dirname, "metrics.py")], {
      env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
      timeoutMs: 120_000,
    });
    expect(stdout).toBe("all well\n");
  });

  it("are read with the official command line", async () => {
    const program = await prepareE2bCli();
    const env = { PATH: "/usr/bin:/bin", HOME: folder, NO_COLOR: "1", ...platform.env };
    const args = [program, "sandbox", "metrics", sandbox.sandboxId, "--format", "json"];
    const { stdout } = await runCommand(process.execPath, args, { cwd: folder, env, timeoutMs: 100_000 });
    expect(stdout).toContain('"memTotal":536870912');
  });

  it("stop at a pause and go on after it", async () => {
    await sandbox.pause();
    const before = (await Sandbox.getMetrics(sandbox.sandboxId, clientOf(platform))).length;
    await sandbox.connect();
    await expect.poll(async () => (await sandbox.getMetrics()).length, LIMIT).toBeGreaterThan(before);
  });
});

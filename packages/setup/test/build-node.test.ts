import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createTestDataFolder, describeTraces, readHostTraces, untilNothingIsLeft } from "@skerry/testkit";
import { expect, onTestFinished, test } from "vitest";
import { openBuildNode, removeBuildNodes } from "../src/build-node.ts";

async function killedSetUp() {
  const folder = await createTestDataFolder(`build-node-${process.pid}-${Math.floor(performance.now())}`);
  onTestFinished(() => rmSync(folder.root, { recursive: true, force: true }));
  const child = spawn(process.execPath, [join(import.meta.dirname, "build-node-process.ts"), folder.root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const [said] = await Promise.race([once(child.stdout, "data"), closed.then(() => ["it ended"])]);
  expect(String(said)).toBe("started\n");
  const nodeDir = join(folder.buildNodesDir, "base");
  expect(describeTraces(await readHostTraces(nodeDir))).not.toEqual([]);
  child.kill("SIGKILL");
  await closed;
  return { folder, nodeDir };
}

test("what a killed set-up left on the host is removed by `down`", async () => {
  const { folder, nodeDir } = await killedSetUp();
  await removeBuildNodes(folder);
  expect(readdirSync(folder.buildNodesDir)).toEqual([]);
  // The names of its resources are derived from the path.
  mkdirSync(nodeDir);
  expect(await untilNothingIsLeft(nodeDir)).toEqual([]);
});

test("what a killed set-up left on the host is removed by the next one, which leaves nothing either", async () => {
  const { folder, nodeDir } = await killedSetUp();
  {
    await using node = await openBuildNode({ folder, name: "base", runtime: "gvisor", env: {} });
    expect(node.layers.list()).toEqual([]);
  }
  expect(readdirSync(folder.buildNodesDir)).toEqual([]);
  mkdirSync(nodeDir);
  expect(await untilNothingIsLeft(nodeDir)).toEqual([]);
});

test("settings of the platform that are not about its sandboxes' network are none of its business, and a bad one that is stops it", async () => {
  const folder = await createTestDataFolder(`build-node-${process.pid}-settings`);
  onTestFinished(() => rmSync(folder.root, { recursive: true, force: true }));
  const open = (env: Record<string, string>) => openBuildNode({ folder, name: "base", runtime: "gvisor", env });
  await (await open({ SKERRY_TEST_CACHE: "/x", SKERRY_API_PORT: "no" }))[Symbol.asyncDispose]();
  await expect(open({ SKERRY_HTTP_PROXY: "proxy" })).rejects.toThrow("SKERRY_HTTP_PROXY takes a URL with a port");
});

import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createLogger } from "@skerry/base";
import { cleanUpNode, createNode } from "@skerry/node";
import { idleLoopDevices } from "@skerry/testkit/leftovers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";
import { VolumeScene } from "./volumes-under-test.ts";

const logger = createLogger({ name: "node-under-test", level: "error", fd: 2 });
const mounts = () => readFileSync("/proc/self/mounts", "utf8");
let under: NodeUnderTest;
let scene: VolumeScene;
let volumesDir: string;
beforeAll(async () => {
  under = await startNode("runc");
  scene = new VolumeScene(under);
  volumesDir = join(under.config.dir, "../elsewhere");
  mkdirSync(volumesDir);
});
afterAll(() => under?.[Symbol.asyncDispose]());

it("keeps volumes in the folder of the setting, which a clean-up finds without it, and which no other node can use", async () => {
  await under.restart({ volumesDir });
  const volume = await scene.newVolume();
  const id = await scene.create(volume);
  await scene.run(id, "echo kept > /data/f; chmod 600 /data/f");
  expect(mounts()).toContain(join(volumesDir, volume, "fs"));
  expect(existsSync(join(under.config.dir, "volumes"))).toBe(false);

  const other = join(under.config.dir, "../other-node");
  await expect(createNode({ ...under.config, dir: other, instance: "0000", volumesDir }, logger)).rejects.toThrow(/SKERRY_VOLUMES/);
  expect(readdirSync(join(other, "sandboxes"))).toEqual([]);

  // As `./skerry down` does it, which does not know the settings of the last start.
  await under.stop();
  await cleanUpNode(under.config, logger);
  expect(mounts()).not.toContain(volumesDir);
  expect(idleLoopDevices(volumesDir)).toEqual([]);
  // The clean-up has removed the folders of the runtimes, which this process has made already.
  for (const name of ["runsc", "runc"]) mkdirSync(join(under.config.dir, name));
  await under.start({ volumesDir });
  expect(await scene.read(volume, "/f")).toBe("kept\n");
  expect(await scene.stat(volume, "/f")).toMatchObject({ uid: 1000, mode: 0o600 });
  await under.client.deleteVolume({ volumeId: volume });
});

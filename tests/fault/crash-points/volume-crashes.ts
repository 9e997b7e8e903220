// kill -9 of the node while it creates, deletes and writes to volumes. A volume exists as a whole or not at all, and a file is the old or the
// new one. What a program in a sandbox has flushed is there, also when the sandbox ends in the same moment.

import { randomUUID } from "node:crypto";
import type { CrashPoint } from "@skerry/node/crash-points";
import { expect, it } from "vitest";
import type { ChildNode } from "../node/child-node.ts";
import { volumeCallsOf } from "../node/volume-calls.ts";
import type { Operation } from "./plan.ts";

interface VolumeCrashes {
  readonly node: () => ChildNode;
  readonly points: (operation: Operation) => CrashPoint[];
  /** Returns whether the call was answered. */
  readonly crash: (point: CrashPoint, call: () => Promise<unknown>) => Promise<boolean>;
  readonly create: (overrides: object) => Promise<string>;
}

export function describeVolumeCrashes({ node, points, crash, create }: VolumeCrashes): void {
  const volumes = volumeCallsOf(node);
  const mounted = (volumeId: string) => ({ volumeMounts: [{ volumeId, path: "/data" }] });

  it.each(points("create a volume"))("in the creation of a volume at %s", async (point) => {
    const volumeId = randomUUID();
    await crash(point, () => volumes.create(volumeId));
    expect(await volumes.ids()).toEqual(point === "volume.created" ? [volumeId] : []);
    expect(await volumes.create(volumeId)).toBe(point !== "volume.created");
    const id = await create(mounted(volumeId));
    await node().writeFile(id, "/data/f", "it works");
    expect(await volumes.read(volumeId)).toBe("it works");
    await node().empty();
  });

  it.each(points("delete a volume"))("in the deletion of a volume at %s", async (point) => {
    const volumeId = randomUUID();
    await volumes.create(volumeId);
    await volumes.write(volumeId, "to be deleted");
    await crash(point, () => node().client.deleteVolume({ volumeId }));
    expect(await volumes.ids()).toEqual([]);
    expect(await node().client.deleteVolume({ volumeId })).toMatchObject({ existed: false });
    expect(await volumes.create(volumeId)).toBe(true);
    expect(await volumes.entries(volumeId)).toEqual([]);
    await node().empty();
  });

  it.each(points("write to a volume"))("in an upload to a volume at %s", async (point) => {
    const volumeId = randomUUID();
    await volumes.create(volumeId);
    const id = await create(mounted(volumeId));
    await volumes.write(volumeId, "before");
    await node().writeFile(id, "/data/of-the-guest", "written by the guest");
    await crash(point, () => volumes.write(volumeId, "after"));
    expect(await volumes.read(volumeId)).toBe("before");
    expect(await volumes.entries(volumeId)).toEqual(["/f", "/of-the-guest"]);
    expect(await node().readFile(id, "/data/f")).toBe("before");
    await volumes.write(volumeId, "again");
    expect(await node().readFile(id, "/data/f")).toBe("again");
    process.kill(node().firstProcessOf(id), "SIGKILL");
    await node().kill9();
    await node().up();
    expect([await volumes.read(volumeId), await volumes.read(volumeId, "/of-the-guest")]).toEqual(["again", "written by the guest"]);
    await node().empty();
  });
}

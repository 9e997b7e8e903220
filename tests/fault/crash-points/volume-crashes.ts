// kill -9 of the node while it creates, deletes and writes to volumes. A volume exists as a whole or not at all, and a file is the old or the
// new one. What a program in a sandbox has flushed is there, also when the sandbox ends in the same moment.

import { randomUUID } from "node:crypto";
import type { CrashPoint } from "@skerry/node/crash-points";
import { expect, it } from "vitest";
import type { ChildNode } from "../node/child-node.ts";
import type { Operation } from "./plan.ts";

const SIZE_BYTES = 16n * 1024n * 1024n;

interface VolumeCrashes {
  readonly node: () => ChildNode;
  readonly points: (operation: Operation) => CrashPoint[];
  /** Returns whether the call was answered. */
  readonly crash: (point: CrashPoint, call: () => Promise<unknown>) => Promise<boolean>;
  readonly create: (overrides: object) => Promise<string>;
}

export function describeVolumeCrashes({ node, points, crash, create }: VolumeCrashes): void {
  const newVolume = async (volumeId: string) => (await node().client.createVolume({ volumeId, sizeBytes: SIZE_BYTES })).created;
  const volumes = async () => (await node().client.listVolumes({})).volumes.map(({ volumeId }) => volumeId);
  const mounted = (volumeId: string) => ({ volumeMounts: [{ volumeId, path: "/data" }] });
  const write = (volumeId: string, content: string) => {
    const head = { volumeId, path: "/f", force: true };
    async function* parts() {
      yield { part: { case: "head" as const, value: head } };
      yield { part: { case: "data" as const, value: new Uint8Array(Buffer.from(content)) } };
      yield { part: { case: "end" as const, value: {} } };
    }
    return node().client.writeVolumeFile(parts());
  };
  const read = async (volumeId: string, path = "/f") => {
    let text = "";
    for await (const { part } of node().client.readVolumeFile({ volumeId, path }))
      if (part.case === "data") text += Buffer.from(part.value).toString();
    return text;
  };
  const entries = async (volumeId: string) => {
    const found: string[] = [];
    for await (const page of node().client.listVolumeDirectory({ volumeId, path: "/", depth: 9 }))
      found.push(...page.entries.map((e) => e.path));
    return found;
  };

  it.each(points("create a volume"))("in the creation of a volume at %s", async (point) => {
    const volumeId = randomUUID();
    await crash(point, () => newVolume(volumeId));
    expect(await volumes()).toEqual(point === "volume.created" ? [volumeId] : []);
    expect(await newVolume(volumeId)).toBe(point !== "volume.created");
    const id = await create(mounted(volumeId));
    await node().writeFile(id, "/data/f", "it works");
    expect(await read(volumeId)).toBe("it works");
    await node().empty();
  });

  it.each(points("delete a volume"))("in the deletion of a volume at %s", async (point) => {
    const volumeId = randomUUID();
    await newVolume(volumeId);
    await write(volumeId, "to be deleted");
    await crash(point, () => node().client.deleteVolume({ volumeId }));
    expect(await volumes()).toEqual([]);
    expect(await node().client.deleteVolume({ volumeId })).toMatchObject({ existed: false });
    expect(await newVolume(volumeId)).toBe(true);
    expect(await entries(volumeId)).toEqual([]);
    await node().empty();
  });

  it.each(points("write to a volume"))("in an upload to a volume at %s", async (point) => {
    const volumeId = randomUUID();
    await newVolume(volumeId);
    const id = await create(mounted(volumeId));
    await write(volumeId, "before");
    await node().writeFile(id, "/data/of-the-guest", "written by the guest");
    await crash(point, () => write(volumeId, "after"));
    expect(await read(volumeId)).toBe("before");
    expect((await entries(volumeId)).sort()).toEqual(["/f", "/of-the-guest"]);
    expect(await node().readFile(id, "/data/f")).toBe("before");
    await write(volumeId, "again");
    expect(await node().readFile(id, "/data/f")).toBe("again");
    process.kill(node().firstProcessOf(id), "SIGKILL");
    await node().kill9();
    await node().up();
    expect([await read(volumeId), await read(volumeId, "/of-the-guest")]).toEqual(["again", "written by the guest"]);
    await node().empty();
  });
}

// kill -9 of the node at the crash points of all its operations. After its next start, everything that was acknowledged exists. A sandbox
// in the middle of a pause is running or paused. A sandbox in the middle of a snapshot runs with its memory. Nothing else is left.

import { setTimeout as sleep } from "node:timers/promises";
import type { CrashPoint } from "@skerry/node/crash-points";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ChildNode } from "../node/child-node.ts";
import { casesOf, type Operation, type Runtime } from "./plan.ts";
import { describeVolumeCrashes } from "./volume-crashes.ts";

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

const OPERATIONS = [
  "create",
  "kill",
  "pause",
  "resume",
  "snapshot",
  "snapshot of the disk",
  "snapshot of a paused one",
  "fork",
  "change the options",
  "delete an image",
  "delete a layer",
  "end by itself",
  "create a volume",
  "delete a volume",
  "write to a volume",
] as const;

/** One node with this runtime. Each test kills it and starts it again. */
export function describeNodeCrashes(runtime: Runtime): void {
  const keepsMemory = runtime === "gvisor";
  const cases = casesOf("a node", runtime, OPERATIONS);
  const points = (operation: Operation) => cases.filter((one) => one.operation === operation).map(({ point }) => point);
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  const create = async (overrides: object = {}) => {
    const id = newId("i", 21);
    await node.client.createSandbox({ spec: node.spec(id, overrides) });
    return id;
  };
  /** Creates a sandbox with data in its memory and on its disk, also in a file with two names in the template. */
  const marked = async () => {
    const id = await create();
    await node.writeFile(id, "/root/file", `disk of ${id}`);
    await node.writeFile(id, "/home/linked", `links of ${id}`);
    await node.writeFile(id, "/dev/shm/memory", `memory of ${id}`);
    return id;
  };
  const expectMarks = async (id: string, { memory, token = "a-token", of = id }: { memory: boolean; token?: string; of?: string }) => {
    expect(await node.readFile(id, "/root/file", token)).toBe(`disk of ${of}`);
    for (const name of ["linked", "linked-too"]) expect(await node.readFile(id, `/home/${name}`, token)).toBe(`links of ${of}`);
    expect(await node.readFile(id, "/dev/shm/memory", token)).toBe(memory ? `memory of ${of}` : 404);
  };
  const resume = (id: string, imageId: string) => node.client.resumeSandbox({ spec: node.spec(id, { imageId }) });
  const paused = async () => {
    const id = await marked();
    const imageId = newId("m", 20);
    await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    return { id, imageId };
  };
  /** The process ends during or after the call. Returns true if the call was answered. */
  const crash = async (point: CrashPoint, call: () => Promise<unknown>): Promise<boolean> => {
    await node.arm(point);
    const answered = await call().then(
      () => true,
      () => false,
    );
    const late = sleep(60_000, "not reached", { ref: false });
    expect(await Promise.race([node.exited(), late]), point).toBe("SIGKILL");
    await node.up();
    return answered;
  };
  const outcome = async (id: string, imageId: string) => ({
    runs: (await node.running()).includes(id),
    hasImage: (await node.images()).includes(imageId),
  });

  it.each(points("create"))("in a create at %s", async (point) => {
    const id = newId("i", 21);
    await crash(point, () => node.client.createSandbox({ spec: node.spec(id) }));
    if ((await node.running()).includes(id)) await node.writeFile(id, "/root/file", "it works");
    else await node.client.createSandbox({ spec: node.spec(id) });
    expect(await node.client.killSandbox({ sandboxId: id })).toMatchObject({ existed: true });
    await node.empty();
  });

  describeVolumeCrashes({ node: () => node, points, crash, create });

  it.each(points("kill"))("in a kill at %s", async (point) => {
    const id = await marked();
    expect(await crash(point, () => node.client.killSandbox({ sandboxId: id }))).toBe(false);
    expect(await node.running()).toEqual([]);
    await node.client.killSandbox({ sandboxId: id });
    await node.empty();
  });

  it.each(points("pause"))("in a pause at %s", async (point) => {
    const id = await marked();
    const imageId = newId("m", 20);
    const answered = await crash(point, () => node.client.pauseSandbox({ sandboxId: id, imageId, memory: true }));
    const after = await outcome(id, imageId);
    expect(after.runs).toBe(!after.hasImage);
    if (answered) expect(after.hasImage).toBe(true);
    if (after.runs) await expectMarks(id, { memory: true });
    // Either way the call can be repeated, and succeeds.
    await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    await resume(id, imageId);
    await expectMarks(id, { memory: keepsMemory });
    await node.empty();
  });

  it.each(points("resume"))("in a resume at %s", async (point) => {
    const { id, imageId } = await paused();
    await crash(point, () => resume(id, imageId));
    // A sandbox that was just restored gets its identity again. Until then its agent accepts no client.
    if ((await outcome(id, imageId)).runs) await expectMarks(id, { memory: keepsMemory });
    const after = await outcome(id, imageId);
    expect(after.runs).toBe(!after.hasImage);
    if (after.hasImage) await resume(id, imageId);
    await expectMarks(id, { memory: keepsMemory });
    expect(await node.images()).toEqual([]);
    await node.empty();
  });

  it.each(points("snapshot"))("in a snapshot at %s", async (point) => {
    const id = await marked();
    const imageId = newId("m", 20);
    await crash(point, () => node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true }));
    await expectMarks(id, { memory: true });
    await node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
    await node.writeFile(id, "/root/file", "changed since");
    const other = await create({ imageId, accessToken: "b" });
    await expectMarks(other, { memory: keepsMemory, token: "b", of: id });
    expect(await node.readFile(id, "/root/file")).toBe("changed since");
    // And once more: an earlier end is not reported again.
    await node.kill9();
    await node.up();
    expect(await node.readFile(id, "/root/file")).toBe("changed since");
    await node.client.killSandbox({ sandboxId: id });
    await node.kill9();
    await node.up();
    expect(await node.running()).toEqual([other]);
    await node.empty();
  });

  it.each(points("snapshot of the disk"))("in a snapshot without memory at %s", async (point) => {
    const id = await marked();
    const imageId = newId("m", 20);
    await crash(point, () => node.client.snapshotSandbox({ sandboxId: id, imageId, memory: false }));
    await expectMarks(id, { memory: true });
    await node.client.snapshotSandbox({ sandboxId: id, imageId, memory: false });
    const other = await create({ imageId, accessToken: "b" });
    expect(await node.readFile(other, "/root/file", "b")).toBe(`disk of ${id}`);
    await node.empty();
  });

  it.each(points("snapshot of a paused one"))("in a snapshot of a paused one at %s", async (point) => {
    const { id, imageId: sourceImageId } = await paused();
    const imageId = newId("m", 20);
    const snapshot = () => node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true, sourceImageId });
    await crash(point, snapshot);
    await snapshot();
    await resume(id, sourceImageId);
    await expectMarks(id, { memory: keepsMemory });
    const other = await create({ imageId, accessToken: "b" });
    await expectMarks(other, { memory: keepsMemory, token: "b", of: id });
    await node.empty();
  });

  it.each(points("fork"))("in a start from a snapshot at %s", async (point) => {
    const id = await marked();
    const imageId = newId("m", 20);
    await node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
    const first = newId("i", 21);
    const spec = node.spec(first, { imageId, accessToken: "b" });
    await crash(point, () => node.client.createSandbox({ spec }));
    if (!(await node.running()).includes(first)) await node.client.createSandbox({ spec });
    await expectMarks(first, { memory: keepsMemory, token: "b", of: id });
    await expectMarks(id, { memory: true });
    expect(await node.images()).toEqual([imageId]);
    await node.empty();
  });

  it.each(points("change the options"))("in a change of options at %s", async (point) => {
    const id = await marked();
    const options = { denyOut: ["198.51.100.0/24"] };
    const change = () => node.client.setSandboxOptions({ sandboxId: id, options });
    expect(await crash(point, change)).toBe(false);
    // The next daemon has made the rules that the record says.
    expect(node.isRestricted(id)).toBe(point === "options.recorded");
    await expectMarks(id, { memory: true });
    await change();
    expect(node.isRestricted(id)).toBe(true);
    await node.empty();
  });

  it.each(points("end by itself"))("when a sandbox has ended by itself, at %s", async (point) => {
    const id = await marked();
    await crash(point, async () => process.kill(node.firstProcessOf(id), "SIGKILL"));
    const { kept } = await node.client.listSandboxes({});
    expect(kept).toMatchObject([{ sandboxId: id, hasMemory: false }]);
    expect(await node.running()).toEqual([]);
    expect(await node.images()).toEqual(kept.map(({ imageId }) => imageId));
    await resume(id, kept[0]?.imageId ?? "");
    await expectMarks(id, { memory: false });
    await node.empty();
  });

  it.each(points("delete a layer"))("in the removal of a layer at %s", async (point) => {
    const id = await marked();
    const digest = await node.addLayer(point);
    await crash(point, () => node.client.deleteLayer({ digest }));
    expect(await node.client.deleteLayer({ digest })).toMatchObject({ removed: false });
    await waitUntil("its files are deleted", () => node.layerNames().length === 1);
    await expectMarks(id, { memory: true });
    expect(await node.addLayer(point)).toBe(digest);
    expect(await node.client.listUnusedLayers({})).toMatchObject({ digests: [digest] });
    expect(await node.client.deleteLayer({ digest })).toMatchObject({ removed: true });
    await node.empty();
  });

  it.each(points("delete an image"))("in the deletion of an image at %s", async (point) => {
    const { id, imageId } = await paused();
    await crash(point, () => node.client.deleteImage({ imageId }));
    expect(await node.images()).toEqual([]);
    await node.client.deleteImage({ imageId });
    await expect(resume(id, imageId)).rejects.toThrow();
    await node.empty();
  });
}

// Sandboxes whose runtime ends without a request, and nodes that start again after the whole host was switched off. The node keeps the disk
// of each sandbox as that of a paused one.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { destroyCgroup, listCgroups } from "@skerry/runtime";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";
import { type OddNode, type OddRunsc, startOddNode } from "./node/odd-runsc.ts";

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

const keptOf = async (node: ChildNode) => (await node.client.listSandboxes({})).kept;
const marked = async (node: ChildNode) => {
  const id = newId("i", 21);
  await node.client.createSandbox({ spec: node.spec(id) });
  await node.writeFile(id, "/root/file", "disk");
  await node.writeFile(id, "/dev/shm/memory", "memory");
  return id;
};
const marksOf = async (node: ChildNode, id: string) => [await node.readFile(id, "/root/file"), await node.readFile(id, "/dev/shm/memory")];
const resume = (node: ChildNode, id: string, imageId: string) => node.client.resumeSandbox({ spec: node.spec(id, { imageId }) });

describe.each(runtimesFor("ends without a request, on a node"))("a sandbox on %s that ended by itself", (runtime) => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  afterEach(() => node.empty());

  /** The only kept sandbox. Expects that none runs. */
  const onlyKept = async (id: string) => {
    await waitUntil("it is kept", async () => (await keptOf(node)).length > 0);
    const [kept, ...others] = await keptOf(node);
    expect(others).toEqual([]);
    expect(kept).toMatchObject({ sandboxId: id, reason: "exited", hasMemory: false });
    expect(await node.running()).toEqual([]);
    expect(await node.images()).toEqual([kept?.imageId]);
    return kept?.imageId ?? "";
  };
  const expectBoots = async (id: string, imageId: string) => {
    expect(await resume(node, id, imageId)).toMatchObject({ startKind: StartKind.BOOT, memoryLostReason: expect.stringMatching(/ended/) });
    expect(await marksOf(node, id)).toEqual(["disk", 404]);
    expect(await keptOf(node)).toEqual([]);
    expect(await node.images()).toEqual([]);
  };

  it("is kept with its disk, and boots from it", async () => {
    const id = await marked(node);
    process.kill(node.recordOf(id).process.pid, "SIGKILL");
    const imageId = await onlyKept(id);
    await expectBoots(id, imageId);
    // Again, from the booted sandbox.
    process.kill(node.recordOf(id).process.pid, "SIGKILL");
    await expectBoots(id, await onlyKept(id));
  });

  it("is kept by a node that starts after the host was switched off", async () => {
    const [id, other] = [await marked(node), await marked(node)];
    const records = [node.recordOf(id), node.recordOf(other)];
    await node.kill9();
    for (const { process: first, cgroupPath } of records) {
      process.kill(first.pid, "SIGKILL");
      await destroyCgroup(cgroupPath);
    }
    // A boot of the host removes mounts, network namespaces and cgroups.
    const mounts = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "");
    for (const path of mounts.reverse()) if (path.startsWith(`${node.dir}/`)) await runCommand("umount", ["--lazy", path]);
    for (const name of node.namespaces()) await runCommand("ip", ["netns", "delete", name]);
    await destroyCgroup(`/skerry-${node.options.instance}`);
    await node.up();
    expect(listCgroups(`/skerry-${node.options.instance}`)).toEqual([]);
    const kept = await keptOf(node);
    expect(kept.map(({ sandboxId }) => sandboxId).sort()).toEqual([id, other].sort());
    for (const { sandboxId, imageId } of kept) await resume(node, sandboxId, imageId);
    for (const each of [id, other]) expect(await marksOf(node, each)).toEqual(["disk", 404]);
  });

  it("is also kept when it ended after a resume but before its image was removed, and that image is deleted", async () => {
    const id = await marked(node);
    const imageId = newId("m", 20);
    await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    await node.arm("start.recorded-ready");
    await resume(node, id, imageId).catch(() => {});
    await node.exited();
    process.kill(node.recordOf(id).process.pid, "SIGKILL");
    await node.up();
    const kept = await onlyKept(id);
    expect(kept).not.toBe(imageId);
    await expectBoots(id, kept);
  });

  it("without a disk has ended", async () => {
    const id = await marked(node);
    const { area, process: first } = node.recordOf(id);
    await runCommand("umount", ["--lazy", join(node.dir, "areas", area, "fs")]).catch(() => {});
    rmSync(join(node.dir, "areas", area), { recursive: true });
    process.kill(first.pid, "SIGKILL");
    await waitUntil("it has ended", async () => (await node.running()).length === 0);
    expect(await keptOf(node)).toEqual([]);
    expect((await node.client.listSandboxes({})).unaskedEnds).toEqual([expect.objectContaining({ sandboxId: id, reason: "exited" })]);
  });
});

describe("unreadable records on a node", () => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime: "gvisor" });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  it("of sandboxes are set aside, and no disk is deleted while they exist", async () => {
    const [id, other] = [await marked(node), await marked(node)];
    const file = node.recordOf(id).file;
    const { area, containerId } = node.recordOf(id);
    await node.stop();
    writeFileSync(file, readFileSync(file, "utf8").slice(0, 50));
    await node.up();
    expect(await node.running()).toEqual([other]);
    expect(existsSync(join(node.dir, "damaged", `${containerId}.json`))).toBe(true);
    await node.stop();
    await node.up();
    expect(existsSync(join(node.dir, "areas", area))).toBe(true);
    expect(node.log()).toContain("it is set aside");
    await node.stop();
    rmSync(join(node.dir, "damaged", `${containerId}.json`));
    await node.up();
    expect(existsSync(join(node.dir, "areas", area))).toBe(false);
    await node.empty();
  });

  it.each(["sandbox", "image"])(
    "because a later version has written that of a %s keep it from starting, with everything as it was",
    async (what) => {
      const [id, paused] = [await marked(node), await marked(node)];
      const imageId = newId("m", 20);
      await node.client.pauseSandbox({ sandboxId: paused, imageId, memory: true });
      const file = what === "image" ? join(node.dir, "images", imageId, "image.json") : node.recordOf(id).file;
      const text = readFileSync(file, "utf8");
      await node.stop();
      writeFileSync(file, JSON.stringify({ ...(JSON.parse(text) as object), version: 99 }));
      await expect(node.up()).rejects.toThrow(/written by a later version of Skerry/);
      writeFileSync(file, text);
      await node.up();
      expect(await marksOf(node, id)).toEqual(["disk", "memory"]);
      await resume(node, paused, imageId);
      expect(await marksOf(node, paused)).toEqual(["disk", "memory"]);
      await node.empty();
    },
  );
});

describe("with a runsc that misbehaves, a snapshot", () => {
  let odd: OddNode;
  let runsc: OddRunsc;
  let node: ChildNode;
  beforeAll(async () => {
    odd = await startOddNode();
    ({ node, runsc } = odd);
  });
  afterAll(() => odd?.[Symbol.asyncDispose]());
  afterEach(() => odd.empty());
  const snapshot = (sandboxId: string, imageId: string) => node.client.snapshotSandbox({ sandboxId, imageId, memory: true });
  const losses = async () => (await node.client.listSandboxes({})).sandboxes.map(({ memoryLostReason }) => memoryLostReason);

  it("reports that its sandbox lost its memory, until the next snapshot", async () => {
    const id = await marked(node);
    const imageId = newId("m", 20);
    runsc.misbehave("fail", "restore");
    const taken = await snapshot(id, imageId);
    expect(taken).toMatchObject({ hasMemory: true, memoryLostReason: expect.stringContaining("could not bring it back") });
    runsc.behave();
    expect(await snapshot(id, imageId)).toEqual(taken);
    expect(await losses()).toEqual([taken.memoryLostReason]);
    expect(await marksOf(node, id)).toEqual(["disk", 404]);
    // The image has the sandbox's data.
    const copy = newId("i", 21);
    await node.client.createSandbox({ spec: node.spec(copy, { imageId, accessToken: "b" }) });
    expect(await node.readFile(copy, "/dev/shm/memory", "b")).toBe("memory");
    await node.kill9();
    await node.up();
    expect((await losses()).sort()).toEqual(["", taken.memoryLostReason]);
    expect(await snapshot(id, newId("m", 20))).toMatchObject({ memoryLostReason: "" });
    expect(await losses()).toEqual(["", ""]);
  });

  it("from which its sandbox cannot continue keeps the sandbox, with its memory", async () => {
    const id = await marked(node);
    const imageId = newId("m", 20);
    runsc.misbehave("fail", "restore", "run");
    await expect(snapshot(id, imageId)).rejects.toThrow(/it is paused now, as it was then/);
    runsc.behave();
    expect(await node.running()).toEqual([]);
    const [kept] = await keptOf(node);
    expect(kept).toMatchObject({ sandboxId: id, hasMemory: true });
    // The caller deletes it, because the operation failed.
    await node.client.deleteImage({ imageId });
    expect(await resume(node, id, kept?.imageId ?? "")).toMatchObject({ startKind: StartKind.RESTORE });
    expect(await marksOf(node, id)).toEqual(["disk", "memory"]);
  });

  it("during which the runtime ends leaves the sandbox paused with its disk; so does a pause, which succeeds", async () => {
    const id = await marked(node);
    runsc.misbehave("die", "checkpoint");
    await expect(snapshot(id, newId("m", 20))).rejects.toThrow(/it is paused now, with its files/);
    const [kept] = await keptOf(node);
    expect(await node.images()).toEqual([kept?.imageId]);
    runsc.behave();
    await resume(node, id, kept?.imageId ?? "");
    runsc.misbehave("die", "checkpoint");
    const imageId = newId("m", 20);
    const paused = await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    expect(paused).toMatchObject({ hasMemory: false, memoryLostReason: expect.stringContaining("ended") });
    expect(await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true })).toEqual(paused);
    runsc.behave();
    expect(await resume(node, id, imageId)).toMatchObject({ startKind: StartKind.BOOT });
    expect(await node.readFile(id, "/root/file")).toBe("disk");
  });
});

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { openLayerStore } from "@skerry/layers";
import { scaled } from "@skerry/testkit/depth";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";

/** More snapshots than fit into one chain, so that a sample also merges a chain. Multiples of ten. */
const SNAPSHOTS = scaled("snapshots of one sandbox in a row", { sample: 50, full: 120 });
const KEPT = [0, 30, 47, 48, 49, 80, 119].filter((number) => number < SNAPSHOTS);
/** The maximum length of a chain, and the area on top. */
const LONGEST = 49;

let node: ChildNode;
beforeAll(async () => {
  node = await ChildNode.start({ runtime: "gvisor" });
});
afterAll(() => node?.[Symbol.asyncDispose]());

/** A path that is too long for system calls. Merging must not depend on the length of paths. */
const DEEP = `
import os, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
for level in range(60):
  os.mkdir("%02d" % level + "x" * 98, dir_fd=folder)
  folder = os.open("%02d" % level + "x" * 98, os.O_RDONLY, dir_fd=folder)`;
const goDeep = (id: string) => execFileSync("/usr/bin/python3", ["-c", DEEP, join(node.dir, "sandboxes", id, "root/root")]);

/** Snapshots, each with its own file. */
async function layersOf(count: number): Promise<string[]> {
  const store = await openLayerStore(node.options.layersDir);
  const layers: string[] = [];
  for (let at = 0; at < count; at += 1) {
    const staged = await store.stagingDir();
    writeFileSync(join(staged, `layer-${at}`), String(at));
    layers.push(await store.adopt(staged));
  }
  return layers;
}

const imageIdOf = (number: number) => `m${String(number).padStart(19, "0")}`;

it(`${SNAPSHOTS} snapshots in a row leave a sandbox and every snapshot complete`, { timeout: 600_000 }, async () => {
  const id = "i00000000000000000001";
  await node.client.createSandbox({ spec: node.spec(id) });
  await node.writeFile(id, "/dev/shm/memory", "memory");
  goDeep(id);
  for (let number = 0; number < SNAPSHOTS; number += 1) {
    await node.writeFile(id, "/root/number", String(number));
    await node.writeFile(id, `/root/of-${number % 10}`, String(number));
    const imageId = imageIdOf(number);
    await node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
    if (!KEPT.includes(number)) await node.client.deleteImage({ imageId });
    expect(await node.readFile(id, "/root/number")).toBe(String(number));
  }
  expect(await node.readFile(id, "/dev/shm/memory")).toBe("memory");
  for (let last = 0; last < 10; last += 1) expect(await node.readFile(id, `/root/of-${last}`)).toBe(String(SNAPSHOTS - 10 + last));
  const [container = ""] = readdirSync(join(node.dir, "sandboxes"));
  const record = JSON.parse(readFileSync(join(node.dir, "sandboxes", container, "sandbox.json"), "utf8")) as { frozenAreas: string[] };
  expect(record.frozenAreas.length).toBeLessThanOrEqual(LONGEST);
  for (const number of KEPT) {
    const other = `i${String(1000 + number).padStart(20, "0")}`;
    await node.client.createSandbox({
      spec: node.spec(other, { imageId: imageIdOf(number), accessToken: "b" }),
    });
    expect(await node.readFile(other, "/root/number", "b")).toBe(String(number));
    expect(await node.readFile(other, "/dev/shm/memory", "b")).toBe("memory");
    await node.client.killSandbox({ sandboxId: other });
  }
  expect(node.log()).toContain("frozen areas merged");
  await node.empty();
});

it("a snapshot after which the sandbox's disk could not be mounted is refused, and the sandbox keeps running", async () => {
  const id = "i00000000000000002000";
  const layers = [node.layer, ...(await layersOf(192))];
  await node.client.createSandbox({ spec: node.spec(id, { layers }) });
  await node.writeFile(id, "/dev/shm/memory", "memory");
  await node.client.snapshotSandbox({ sandboxId: id, imageId: imageIdOf(200), memory: true });
  const refused = node.client.snapshotSandbox({ sandboxId: id, imageId: imageIdOf(201), memory: true });
  await expect(refused).rejects.toMatchObject({ code: Code.ResourceExhausted, rawMessage: expect.stringContaining("194 layers") });
  expect(await node.images()).toEqual([imageIdOf(200)]);
  expect(await node.readFile(id, "/dev/shm/memory")).toBe("memory");
  expect(await node.readFile(id, "/layer-150")).toBe("150");
  await node.empty();
});

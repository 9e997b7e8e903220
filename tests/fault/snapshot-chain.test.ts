import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { scaled } from "@skerry/testkit/depth";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";

/** More than fit into one chain, so that a sample merges one too. Multiples of ten. */
const SNAPSHOTS = scaled("snapshots of one sandbox in a row", { sample: 60, full: 120 });
const KEPT = [0, 30, 47, 48, 49, 80, 119].filter((number) => number < SNAPSHOTS);
/** As long as a chain may get, and the area on top. */
const LONGEST = 49;

let node: ChildNode;
beforeAll(async () => {
  node = await ChildNode.start({ runtime: "gvisor" });
});
afterAll(() => node?.[Symbol.asyncDispose]());

const imageIdOf = (number: number) => `m${String(number).padStart(19, "0")}`;

it(`${SNAPSHOTS} snapshots in a row leave a sandbox and every snapshot whole`, { timeout: 600_000 }, async () => {
  const id = "i00000000000000000001";
  await node.client.createSandbox({ spec: node.spec(id) });
  await node.writeFile(id, "/dev/shm/memory", "memory");
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

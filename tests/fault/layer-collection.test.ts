// Unused layers are removed while sandboxes are created on them, another process adopts them, and the node is killed. A sandbox keeps its
// complete layers, and in the end no byte of an unused layer is left.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import { openLayerStore } from "@skerry/layers";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";

const NAMES = ["one", "two"];
const KILLS = scaled("kill -9 of nodes that remove layers", { sample: 4, full: 25 });

describe.each(runtimesFor("the collection of layers"))("layers on %s", (runtime) => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  let count = 0;
  const newId = () => {
    count += 1;
    return `i${String(count).padStart(20, "0")}`;
  };

  it("are not removed while a sandbox, a paused one or a hold has them", async () => {
    const digest = await node.addLayer("used");
    const remove = async () => (await node.client.deleteLayer({ digest })).removed;
    const [id, imageId] = [newId(), "m".repeat(20)];
    await node.client.createSandbox({ spec: node.spec(id, { layers: [digest] }) });
    expect(await remove()).toBe(false);
    await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    expect(await remove()).toBe(false);
    await node.kill9();
    await node.up();
    expect(await remove()).toBe(false);
    await node.client.resumeSandbox({ spec: node.spec(id, { imageId, layers: [] }) });
    expect(await remove()).toBe(false);
    expect(await node.readFile(id, "/home/which")).toBe("used");
    const store = await openLayerStore(node.options.layersDir);
    expect(await store.hold("test", [digest as never])).toBe(true);
    await node.empty();
    expect((await node.client.listUnusedLayers({})).digests).toEqual([node.layer]);
    expect(await remove()).toBe(false);
    store.release("test");
    await waitUntil("the layer is removed", remove);
    await waitUntil("its files are deleted", () => node.layerNames().length === 1);
    const create = node.client.createSandbox({ spec: node.spec(newId(), { layers: [digest] }) });
    await expect(create).rejects.toMatchObject({ code: Code.FailedPrecondition });
    await node.empty();
  });

  it("are never missing where they are in use, with removals, creates, adoptions and kill -9 at once", async () => {
    let isOver = false;
    const until = async (work: () => Promise<void>) => {
      while (!isOver) await work();
    };
    /** Calls may fail while the node is down. Creates may also fail while their layer is missing. */
    const calling = async <T>(call: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await call();
      } catch (error) {
        const isDown = error instanceof ConnectError && (error.code !== Code.Internal || errnoOf(error.cause) !== undefined);
        if (!isDown) throw error;
        await delay(10);
        return undefined;
      }
    };
    const done = { created: 0, removed: 0, adopted: 0 };
    const create = (name: string) => async () => {
      const digest = await node.addLayer(name);
      const id = newId();
      if (!(await calling(() => node.client.createSandbox({ spec: node.spec(id, { layers: [digest] }) })))) return;
      done.created += 1;
      const content = await node.readFile(id, "/home/which").catch(() => "down");
      expect([name, "down"]).toContain(content);
      await calling(() => node.client.killSandbox({ sandboxId: id }));
    };
    const remove = async () => {
      for (const digest of (await calling(() => node.client.listUnusedLayers({})))?.digests ?? []) {
        if ((await calling(() => node.client.deleteLayer({ digest })))?.removed) done.removed += 1;
      }
      await delay(5);
    };
    const adopt = async () => {
      const store = await openLayerStore(node.options.layersDir);
      const digest = await node.addLayer("held", "test");
      for (let look = 0; look < 20; look += 1) {
        expect(existsSync(join(await store.path(digest as never), "home/which"))).toBe(true);
        await delay(5);
      }
      done.adopted += 1;
      store.release("test");
    };
    const work = Promise.all([...NAMES.map((name) => until(create(name))), until(remove), until(remove), until(adopt)]);
    const kept = newId();
    const keptLayer = await node.addLayer("kept", "kept");
    await node.client.createSandbox({ spec: node.spec(kept, { layers: [keptLayer] }) });
    (await openLayerStore(node.options.layersDir)).release("kept");
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(500 + Math.random() * 1_000);
      await node.kill9();
      await node.up();
      expect(await node.readFile(kept, "/home/which")).toBe("kept");
    }
    const { created, removed, adopted } = done;
    await waitUntil(
      "each kind of work was done after the last kill",
      () => done.created > created && done.removed > removed && done.adopted > adopted,
    );
    isOver = true;
    await work;
    expect(await node.readFile(kept, "/home/which")).toBe("kept");
    await node.empty();
    for (const digest of (await node.client.listUnusedLayers({})).digests) await node.client.deleteLayer({ digest });
    await waitUntil("all files are deleted", () => node.layerNames().length === 0);
  });
});

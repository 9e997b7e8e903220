import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { cgroupRoots, listCgroups } from "@skerry/runtime";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { areasInUse, type NodeUnderTest, startNode } from "./node-under-test.ts";

/** In bytes, as the host holds the group to it. */
function memoryLimitOf(cgroupPath: string): number {
  const files = cgroupRoots().flatMap((root) => ["memory.max", "memory.limit_in_bytes"].map((name) => join(root, cgroupPath, name)));
  return Number(readFileSync(files.find((file) => existsSync(file)) ?? "", "utf8"));
}

let images = 0;
function newImageId(): string {
  images += 1;
  return `m${String(images).padStart(19, "0")}`;
}

describe.each(runtimesFor("a node's images"))("images on %s", (runtime) => {
  const keepsMemory = runtime === "gvisor";
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime);
  });
  afterAll(() => under?.[Symbol.asyncDispose]());
  afterEach(async () => {
    for (const { sandboxId } of (await under.client.listSandboxes({})).sandboxes) await under.client.killSandbox({ sandboxId });
    for (const imageId of (await under.client.listImages({})).imageIds) await under.client.deleteImage({ imageId });
    await waitUntil("containers are given back", () => readdirSync(join(under.config.dir, "sandboxes")).length === 0);
    expect(readdirSync(join(under.config.dir, "images"))).toEqual([]);
    expect(areasInUse(under)).toEqual([]);
    expect(listCgroups(`/skerry-${under.config.instance}`)).toEqual([]);
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(`${under.config.dir}/sandboxes/`);
  });

  let count = 0;
  const create = async (overrides: object = {}) => {
    count += 1;
    const id = `i${String(count).padStart(20, "0")}`;
    await under.client.createSandbox({ spec: { ...under.spec(id), ...overrides } });
    return id;
  };
  const fileOf = (sandboxId: string, options: { method: string; path: string; body?: string; token?: string }) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      void under.node.dial({ sandboxId, port: 49_983 }).then((socket) => {
        const outgoing = request({
          createConnection: () => socket,
          method: options.method,
          path: `/files?path=${options.path}&username=root`,
          headers: { "X-Access-Token": options.token ?? "a-token", "Content-Type": "application/octet-stream", Host: "x" },
        });
        outgoing.on("error", reject);
        outgoing.on("response", async (response) => {
          let text = "";
          for await (const chunk of response) text += chunk;
          resolve({ status: response.statusCode ?? 0, text });
        });
        outgoing.end(options.body);
      }, reject);
    });
  const write = async (id: string, path: string, body: string, token?: string) =>
    expect(await fileOf(id, { method: "POST", path, body, ...(token ? { token } : {}) })).toMatchObject({ status: 200 });
  const read = async (id: string, path: string, token?: string) => {
    const answer = await fileOf(id, { method: "GET", path, ...(token ? { token } : {}) });
    return answer.status === 200 ? answer.text : answer.status;
  };
  const bootIdOf = (id: string) => read(id, "/proc/sys/kernel/random/boot_id");
  const states = async () => (await under.client.listSandboxes({})).sandboxes.map(({ sandboxId, state }) => [sandboxId, state]);
  const resume = (id: string, imageId: string, overrides: object = {}) =>
    under.client.resumeSandbox({ spec: { ...under.spec(id), imageId, ...overrides } });

  it("pauses and resumes: the disk is kept, and memory where it can be", async () => {
    const id = await create();
    await write(id, "/root/file", "kept");
    await write(id, "/dev/shm/memory", "in memory");
    const imageId = newImageId();
    const paused = await under.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    expect(paused).toMatchObject({ hasMemory: keepsMemory, agentUnresponsive: false });
    expect(await states()).toEqual([]);
    expect(listCgroups(`/skerry-${under.config.instance}`)).toEqual([]);
    expect((await under.client.listImages({})).imageIds).toEqual([imageId]);
    // Asked again (an answer may be lost), it says the same.
    expect(await under.client.pauseSandbox({ sandboxId: id, imageId, memory: true })).toMatchObject({ hasMemory: keepsMemory });

    const resumed = await resume(id, imageId);
    expect(resumed).toMatchObject({ startKind: keepsMemory ? StartKind.RESTORE : StartKind.BOOT, memoryLostReason: "" });
    expect(await read(id, "/root/file")).toBe("kept");
    expect(await read(id, "/dev/shm/memory")).toBe(keepsMemory ? "in memory" : 404);
    expect((await under.client.listImages({})).imageIds).toEqual([]);
  });

  it("keeps a file one file under its names, also while others of this machine have the mounts of before", async () => {
    const id = await create();
    const holders: ChildProcess[] = [];
    // As a program does that was just starting, or a service with mounts of its own.
    const hold = async () => {
      const holder = spawn("unshare", ["--mount", "--propagation=private", "--", "sh", "-c", "echo; exec sleep 1000"]);
      holders.push(holder);
      await once(holder.stdout, "data");
    };
    const expectOne = async (of: string, text: string) => expect(await read(of, "/home/linked-too")).toBe(text);
    try {
      await write(id, "/home/linked", "before the pause");
      await hold();
      const paused = newImageId();
      await under.client.pauseSandbox({ sandboxId: id, imageId: paused, memory: true });
      await resume(id, paused);
      await expectOne(id, "before the pause");
      await write(id, "/home/linked", "before the snapshot");
      await hold();
      const imageId = newImageId();
      await under.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
      for (const one of [id, await create({ imageId })]) {
        await expectOne(one, "before the snapshot");
        await write(one, "/home/linked", "after the snapshot");
        await expectOne(one, "after the snapshot");
      }
    } finally {
      for (const holder of holders) {
        holder.kill("SIGKILL");
        await once(holder, "exit");
      }
    }
  });

  // On runc guests see the machine's.
  if (keepsMemory) {
    it("tells the guest the size of its memory, however it came up", async () => {
      const id = await create({ memoryMb: 300 });
      const told = async (sandboxId: string) => /MemTotal: +(\d+) kB/.exec(String(await read(sandboxId, "/proc/meminfo")))?.[1];
      const expected = String(300 * 1024);
      expect(await told(id)).toBe(expected);
      const imageId = newImageId();
      await under.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
      expect(await told(id)).toBe(expected);
      expect(await told(await create({ imageId }))).toBe(expected);
      const pause = newImageId();
      await under.client.pauseSandbox({ sandboxId: id, imageId: pause, memory: true });
      await resume(id, pause);
      expect(await told(id)).toBe(expected);
      // What its kernel needs comes on top, or a guest that uses all of its memory would be killed.
      expect(memoryLimitOf(`/skerry-${under.config.instance}/${id}`)).toBe((300 + 128 + 1024) * 1024 * 1024);
    });
  }

  it("survives many cycles, and stays one area deep", async () => {
    const id = await create();
    for (let cycle = 0; cycle < 5; cycle += 1) {
      await write(id, "/root/cycle", String(cycle));
      const imageId = newImageId();
      await under.client.pauseSandbox({ sandboxId: id, imageId, memory: cycle % 2 === 0 });
      await resume(id, imageId);
      expect(await read(id, "/root/cycle")).toBe(String(cycle));
    }
    expect(areasInUse(under)).toHaveLength(1);
  });

  it("boots from the disk when memory is not wanted", async () => {
    const id = await create({ envVars: { A: "1" } });
    await write(id, "/root/file", "kept");
    await write(id, "/dev/shm/memory", "in memory");
    const imageId = newImageId();
    expect(await under.client.pauseSandbox({ sandboxId: id, imageId, memory: false })).toMatchObject({ hasMemory: false });
    expect(await resume(id, imageId)).toMatchObject({ startKind: StartKind.BOOT });
    expect(await read(id, "/root/file")).toBe("kept");
    expect(await read(id, "/dev/shm/memory")).toBe(404);
  });

  it("outlives its daemon: paused before, resumed after", async () => {
    const id = await create();
    await write(id, "/root/file", "kept");
    const imageId = newImageId();
    await under.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    await under.restart();
    expect((await under.client.listImages({})).imageIds).toEqual([imageId]);
    await resume(id, imageId);
    expect(await read(id, "/root/file")).toBe("kept");
  });

  it("takes snapshots of a sandbox that goes on, and starts others from them", async () => {
    const id = await create();
    await write(id, "/root/file", "before");
    const boot = await bootIdOf(id);
    const imageId = newImageId();
    expect(await under.client.snapshotSandbox({ sandboxId: id, imageId, memory: true })).toMatchObject({ hasMemory: keepsMemory });
    expect(await read(id, "/root/file")).toBe("before");
    await write(id, "/root/file", "after");
    expect(await bootIdOf(id)).toBe(boot);

    const others = [await create({ imageId, accessToken: "b" }), await create({ imageId, accessToken: "c" })];
    expect(await read(others[0] ?? "", "/root/file", "b")).toBe("before");
    expect(await read(others[1] ?? "", "/root/file", "b")).toBe(401);
    await write(others[1] ?? "", "/root/file", "third", "c");
    expect(await read(others[0] ?? "", "/root/file", "b")).toBe("before");
    expect(await read(id, "/root/file")).toBe("after");
    // The image may go, those that were started from it stay.
    await under.client.deleteImage({ imageId });
    expect(await read(others[0] ?? "", "/root/file", "b")).toBe("before");
    const again = newImageId();
    await under.client.snapshotSandbox({ sandboxId: id, imageId: again, memory: true });
    const last = await create({ imageId: again, accessToken: "d" });
    expect(await read(last, "/root/file", "d")).toBe("after");
  });

  it("never touches an image that is there already", async () => {
    const id = await create();
    const other = await create();
    const imageId = newImageId();
    await under.client.pauseSandbox({ sandboxId: other, imageId, memory: true });
    await expect(under.client.pauseSandbox({ sandboxId: id, imageId, memory: true })).rejects.toThrow(/exists/);
    expect(await read(id, "/root/none")).toBe(404);
    expect(await resume(other, imageId)).toMatchObject({ memoryLostReason: "" });
  });

  it("shares the image of a paused sandbox, which resumes as it was", async () => {
    const id = await create();
    await write(id, "/root/file", "paused");
    const paused = newImageId();
    const shared = newImageId();
    await under.client.pauseSandbox({ sandboxId: id, imageId: paused, memory: true });
    await under.client.snapshotSandbox({ sandboxId: id, imageId: shared, memory: true, sourceImageId: paused });
    const other = await create({ imageId: shared, accessToken: "b" });
    await write(other, "/root/file", "other", "b");
    await resume(id, paused);
    expect(await read(id, "/root/file")).toBe("paused");
    expect(await read(other, "/root/file", "b")).toBe("other");
  });
});

import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anotherLayer, areasInUse, type NodeUnderTest, startNode } from "./node-under-test.ts";

describe.each(runtimesFor("a node's pool"))("the warm pool on %s", (runtime) => {
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime, { poolSize: 2 });
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  let count = 0;
  const create = async (overrides: object = {}) => {
    count += 1;
    const id = `i${String(count).padStart(20, "0")}`;
    return { id, ...(await under.client.createSandbox({ spec: { ...under.spec(id), ...overrides } })) };
  };
  const list = async () => (await under.client.listSandboxes({})).sandboxes.map((one) => [one.sandboxId, one.state]);
  const containers = () => readdirSync(join(under.config.dir, "sandboxes"));
  const stateOf = (name: string) =>
    (JSON.parse(readFileSync(join(under.config.dir, "sandboxes", name, "sandbox.json"), "utf8")) as { state: string }).state;
  const ready = () => containers().filter((name) => stateOf(name) === "pooled").length;
  const full = () => waitUntil("the pool is full", () => ready() === 2);

  it("hands out what is ready, fills up behind it, and lists only what is somebody's", async () => {
    const first = await create();
    expect(first.startKind).toBe(StartKind.BOOT);
    await full();
    const next = [await create(), await create({ options: { allowInternetAccess: false } })];
    expect(next.map(({ startKind }) => startKind)).toEqual([StartKind.CLAIM, StartKind.CLAIM]);
    if (runtime === "gvisor") for (const { id } of [first, ...next]) expect(await memoryToldTo(under, id)).toBe(256 * 1024);
    await full();
    expect((await list()).sort()).toEqual([first, ...next].map(({ id }) => [id, "running"]));
    for (const { id } of [first, ...next]) await under.client.killSandbox({ sandboxId: id });
    expect(await list()).toEqual([]);
  });

  it("discards what it has ready of a template that is gone, and its image, when the layer is removed", async () => {
    const digest = await anotherLayer(under);
    const listed = async () => (await under.client.listUnusedLayers({})).digests;
    const onIt = () =>
      [
        ...containers().map((name) => join("sandboxes", name, "sandbox.json")),
        ...images().map((name) => join("images", name, "image.json")),
      ]
        .map((file) => join(under.config.dir, file))
        .filter((file) => existsSync(file) && readFileSync(file, "utf8").includes(digest)).length;
    const images = () => readdirSync(join(under.config.dir, "images"));
    const { id } = await create({ templateId: "other", layers: [digest] });
    await waitUntil("the pool has some of both templates", () => ready() >= 2 && onIt() > 1);
    expect(await listed()).not.toContain(digest);
    await under.client.killSandbox({ sandboxId: id });
    // Whatever the pool has is nobody's.
    await waitUntil("only the pool has the layer", async () => (await listed()).includes(digest));
    await waitUntil("it is removed", async () => (await under.client.deleteLayer({ digest })).removed);
    expect(onIt()).toBe(0);
    await under.client.createSandbox({ spec: under.spec("i".repeat(20)) });
    await under.client.killSandbox({ sandboxId: "i".repeat(20) });
  });

  if (runtime === "gvisor") {
    it("starts every sandbox that is asked for while the image of the template turns out to be unusable, and takes another", async () => {
      const image = () =>
        join(under.config.dir, "images", readdirSync(join(under.config.dir, "images")).find((name) => name.startsWith("t")) ?? "");
      await full();
      const { ino } = statSync(image());
      for (const name of readdirSync(join(image(), "memory"))) rmSync(join(image(), "memory", name));
      const made: Awaited<ReturnType<typeof create>>[] = [];
      // Until the pool has found out, and beyond: it gives way to creates, so there are moments without any.
      await Promise.all(
        Array.from({ length: 3 }, async (_, at) => {
          for (let round = 0; round < 5; round++) {
            made.push(await create());
            if (at > 0) await setTimeout(150);
          }
        }),
      );
      expect(made.filter(({ startKind }) => startKind === StartKind.BOOT).length).toBeGreaterThan(0);
      for (const { id } of made) expect(await statusWith(under, id, "a-token")).toBe(200);
      for (const { id } of made) await under.client.killSandbox({ sandboxId: id });
      await waitUntil("another image is taken", () => existsSync(join(image(), "image.json")) && statSync(image()).ino !== ino);
      await full();
      const { id, startKind } = await create();
      expect(startKind).toBe(StartKind.CLAIM);
      await under.client.killSandbox({ sandboxId: id });
    });
  }

  it("does not hand out one for another size or another template", async () => {
    await full();
    const other = await create({ memoryMb: 300 });
    expect(other.startKind).toBe(StartKind.BOOT);
    await under.client.killSandbox({ sandboxId: other.id });
  });

  it("gives every claim its own identity, also many at once", async () => {
    const made = await Promise.all(Array.from({ length: 8 }, (_, at) => create({ accessToken: `token-${at}` })));
    const statuses = await Promise.all(
      made.flatMap(({ id }, at) => [at, (at + 1) % 8].map((token) => statusWith(under, id, `token-${token}`))),
    );
    expect(statuses).toEqual(made.flatMap(() => [200, 401]));
    const generations = await Promise.all(made.map(({ id }, at) => generationOf(under, id, `token-${at}`)));
    expect(new Set(generations).size).toBe(made.length);
    for (const { id } of made) await under.client.killSandbox({ sandboxId: id });
  });

  it("pauses, resumes and snapshots what came from the pool like any other", async () => {
    await waitUntil("one is ready", () => ready() > 0);
    const { id } = await create();
    const [pause, snapshot] = ["mpool000000000000001", "mpool000000000000002"].map((one) => one.slice(0, 20));
    await under.client.snapshotSandbox({ sandboxId: id, imageId: snapshot ?? "", memory: true });
    await under.client.pauseSandbox({ sandboxId: id, imageId: pause?.replace("m", "n") ?? "", memory: true });
    await under.client.resumeSandbox({ spec: { ...under.spec(id), imageId: pause?.replace("m", "n") ?? "" } });
    expect(await statusWith(under, id, "a-token")).toBe(200);
    await under.client.killSandbox({ sandboxId: id });
    await under.client.deleteImage({ imageId: snapshot ?? "" });
  });

  it("is given back with the node, and nothing is left but the image of the template", async () => {
    await under.restart();
    expect(await list()).toEqual([]);
    await under.node.close();
    expect(containers()).toEqual([]);
    const images = readdirSync(join(under.config.dir, "images"));
    expect(images.every((name) => name.startsWith("t"))).toBe(true);
    if (runtime === "runc") expect(areasInUse(under)).toEqual([]);
  });
});

/** In KiB, as its kernel says. */
async function memoryToldTo(under: NodeUnderTest, sandboxId: string): Promise<number> {
  const total = /MemTotal: +(\d+) kB/;
  const text = await answerTo(under, sandboxId, { path: "/files?path=/proc/meminfo&username=root", until: total });
  return Number(total.exec(text)?.[1]);
}

async function generationOf(under: NodeUnderTest, sandboxId: string, token: string): Promise<string> {
  const line = /\n([0-9a-f]{32})\n/;
  const text = await answerTo(under, sandboxId, { path: "/files?path=/run/skerry/generation&username=root", token, until: line });
  return line.exec(text)?.[1] ?? "";
}

async function statusWith(under: NodeUnderTest, sandboxId: string, token: string): Promise<number> {
  const text = await answerTo(under, sandboxId, { path: "/metrics", token, until: /\r\n/ });
  return Number(text.split(" ")[1]);
}

/** What a sandbox's agent answers, until it holds what is looked for. */
async function answerTo(
  under: NodeUnderTest,
  sandboxId: string,
  request: { path: string; token?: string; until: RegExp },
): Promise<string> {
  const socket = await under.node.dial({ sandboxId, port: 49_983 });
  const answer = new Promise<string>((resolve, reject) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk;
      if (request.until.test(text)) resolve(text);
    });
    socket.once("end", () => reject(new Error(`the answer ended: ${text}`)));
    socket.once("error", reject);
  });
  socket.write(`GET ${request.path} HTTP/1.0\r\nHost: x\r\nX-Access-Token: ${request.token ?? "a-token"}\r\n\r\n`);
  try {
    return await answer;
  } finally {
    socket.destroy();
  }
}

import { mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { BuildLog } from "@skerry/builder";
import { type LayerDigest, parseLayerDigest } from "@skerry/layers";
import { adoptBash } from "@skerry/testkit/bash-layer";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartCommandSchema, StartKind } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { areasInUse, type NodeUnderTest, startNode } from "./node-under-test.ts";

const SERVER = "echo begun; n=0; while true; do n=$((n + 1)); echo $NAME $n | nc -l -p 8000; done";

describe.each(runtimesFor("a node's start commands"))("the start command of a template on %s", (runtime) => {
  const keepsMemory = runtime === "gvisor";
  let under: NodeUnderTest;
  let layers: LayerDigest[];
  beforeAll(async () => {
    under = await startNode(runtime);
    layers = [parseLayerDigest(under.layer), await adoptBash(under.config.layers)];
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  const { signal } = new AbortController();
  const start = (command: string, ready: string, user = "user") =>
    create(StartCommandSchema, { command, ready, user, workdir: "/home", env: { NAME: "here" } });
  const server = start(SERVER, "netstat -lnt 2>/dev/null | grep -q 8000 || grep -q :1F40 /proc/net/tcp /proc/net/tcp6");
  const prepare = async (command: ReturnType<typeof start>, { force = false } = {}) => {
    const lines: string[] = [];
    const log: BuildLog = ({ message }) => void lines.push(message);
    const size = { cpuCount: 1, memoryMb: 256, diskSizeMb: 64 };
    const about = { buildId: "b", templateId: "t", layers, size, runtime: "", start: command, force, signal, log };
    await under.node.buildHost.prepareTemplate(about);
    return lines;
  };
  let count = 0;
  const createSandbox = async (more: object = {}) => {
    const sandboxId = `i${String(++count).padStart(20, "0")}`;
    const spec = { ...under.spec(sandboxId), layers, start: server, ...more };
    return { sandboxId, ...(await under.client.createSandbox({ spec })) };
  };
  const kill = (sandboxId: string) => under.client.killSandbox({ sandboxId });
  const ask = async (sandboxId: string) => {
    const socket = await under.node.dial({ sandboxId, port: 8000 });
    socket.end();
    let text = "";
    for await (const piece of socket) text += piece;
    return text;
  };
  const images = () => readdirSync(join(under.config.dir, "images")).filter((name) => name.startsWith("t"));

  it("runs once, and every sandbox has what it started", async () => {
    expect(await prepare(server)).toContain("[start] [stdout]: begun");
    expect(images().length).toBe(keepsMemory ? 1 : 0);
    const made = await Promise.all([createSandbox(), createSandbox()]);
    for (const { sandboxId, startKind } of made) {
      expect(startKind).toBe(keepsMemory ? StartKind.RESTORE : StartKind.BOOT);
      expect(await ask(sandboxId)).toMatch(/^here \d+\n$/);
    }
    for (const { sandboxId } of made) await kill(sandboxId);
    // Nothing is kept but the image.
    if (keepsMemory) expect(await prepare(server), "the image is reused").toEqual([]);
    if (keepsMemory) expect(await prepare(server, { force: true })).toContain("[start] [stdout]: begun");
    expect((await under.client.listSandboxes({})).sandboxes).toEqual([]);
  });

  it("replaces the memory that the runtime cannot keep, and not memory that the caller does not want", async () => {
    const { sandboxId } = await createSandbox();
    const pauseAndResume = async (imageId: string, { memory = true } = {}) => {
      await under.client.pauseSandbox({ sandboxId, imageId, memory });
      return await under.client.resumeSandbox({ spec: { ...under.spec(sandboxId), imageId } });
    };
    await pauseAndResume("m0000000000000000001");
    // The caller of a resume has waited for the ready command.
    expect(await ask(sandboxId)).toMatch(/^here \d+\n$/);
    const imageId = "m0000000000000000002";
    await under.client.snapshotSandbox({ sandboxId, imageId, memory: true });
    const fork = await createSandbox({ imageId });
    expect(await ask(fork.sandboxId)).toMatch(/^here \d+\n$/);
    expect((await pauseAndResume("m0000000000000000003", { memory: false })).startKind).toBe(StartKind.BOOT);
    await expect(ask(sandboxId)).rejects.toThrow();
    for (const id of [sandboxId, fork.sandboxId]) await kill(id);
    await under.client.deleteImage({ imageId });
  });

  it("runs in a sandbox whose node ended before it could start it", async () => {
    const { sandboxId } = await createSandbox({ start: undefined });
    await expect(ask(sandboxId)).rejects.toThrow();
    await under.stop();
    const file = join(under.config.dir, "sandboxes", sandboxId, "sandbox.json");
    const { command, ready, user, workdir, env } = server;
    const owed = { start: { command, ready, user, workdir, env }, startOwed: true };
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...owed }));
    await under.start();
    await waitUntil("its server answers", () => ask(sandboxId).then(Boolean, () => false));
    expect(JSON.parse(readFileSync(file, "utf8"))).not.toHaveProperty("startOwed");
    await kill(sandboxId);
    await waitUntil("nothing of both tests is left", () => areasInUse(under).length === 0);
  });

  it("fails a build when it fails before the template is ready, or its user does not exist", async () => {
    const before = areasInUse(under).sort();
    await expect(prepare(start("exit 7", "false"))).rejects.toMatchObject({
      name: "BuildFailure",
      step: "finalize",
      message: "start command failed: error running start command: exit status 7",
    });
    await expect(prepare(start("true", "", "nobody-here"))).rejects.toThrow("invalid username: 'nobody-here'");
    expect(areasInUse(under).sort()).toEqual(before);
  });

  if (keepsMemory) {
    it("runs again when the image is lost, and the image is taken again", async () => {
      const [imageId = ""] = images();
      await under.client.deleteImage({ imageId });
      const { sandboxId, startKind } = await createSandbox();
      expect(startKind).toBe(StartKind.BOOT);
      expect(await ask(sandboxId)).toMatch(/^here \d+\n$/);
      await kill(sandboxId);
      await waitUntil("the image is there again", () => images().length === 1);
      await waitUntil("a sandbox is restored", async () => {
        const next = await createSandbox();
        await kill(next.sandboxId);
        return next.startKind === StartKind.RESTORE;
      });
    });

    it("is run again for another version of the agent, before anybody asks, and its former image goes then", async () => {
      const before = images();
      const { agents } = under.config;
      const dir = join(under.config.dir, "../agents-of-this-test");
      mkdirSync(dir);
      for (const digest of [agents.current.digest, "another"])
        symlinkSync(realpathSync(join(agents.dir, agents.current.digest)), join(dir, digest));
      await under.stop();
      Object.assign(under.config, { agents: { ...agents, dir, current: { ...agents.current, digest: "another" } } });
      await under.start();
      await waitUntil("there is another image instead", () => images().length === 1 && images()[0] !== before[0]);
      const { sandboxId, startKind } = await createSandbox();
      expect(startKind).toBe(StartKind.RESTORE);
      expect(await ask(sandboxId)).toMatch(/^here \d+\n$/);
      await kill(sandboxId);
    });

    it("keeps its image over a restart of the node, and loses it with the template's layers", async () => {
      const before = images();
      await under.restart();
      expect(images()).toEqual(before);
      const { sandboxId, startKind } = await createSandbox();
      expect(startKind).toBe(StartKind.RESTORE);
      await kill(sandboxId);
      await waitUntil("the layer is removed", async () => (await under.client.deleteLayer({ digest: layers[1] ?? "" })).removed);
      expect(images()).toEqual([]);
    });
  }
});

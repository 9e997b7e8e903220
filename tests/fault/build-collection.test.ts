// Builds while everything that the node calls unused is removed, while the node is killed, and while its disk has no room. A build has its
// layers until it is forgotten, and afterwards nothing of it is left but what the cache of steps keeps.

import { copyFileSync, mkdirSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { runCommand } from "@skerry/base";
import { openLayerStore } from "@skerry/layers";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import type { BuildResult } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";

const MIB = 2 ** 20;
const RESERVE = 1024 * MIB;
const BUILDS = scaled("builds beside a collection of layers", { sample: 2, full: 20 });

describe.each(runtimesFor("builds and the collection of layers"))("builds on %s", (runtime) => {
  let node: ChildNode;
  let base: string[];
  beforeAll(async () => {
    node = await ChildNode.start({ runtime, diskMb: 3072 });
    base = [node.layer, await bashLayer(node)];
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  let count = 0;
  const newId = () => {
    count += 1;
    return `build-${count}`;
  };

  interface Ended {
    readonly result: BuildResult | undefined;
    readonly reason: string;
  }

  /** Starts a build and follows it to its end. */
  async function build(buildId: string, commands: readonly string[], force = false): Promise<Ended> {
    const source = { case: "template" as const, value: { name: "base", layers: base } };
    const steps = commands.map((command) => ({ type: "RUN", args: [command, "root"] }));
    const size = { cpuCount: 1, memoryMb: 256, diskSizeMb: 128 };
    await node.client.startBuild({ spec: { buildId, templateId: "t", cacheScope: "team", source, steps, force, ...size } });
    for await (const { event } of node.client.watchBuild({ buildId, from: 0n })) {
      if (event.case === "succeeded") return { result: event.value, reason: "" };
      if (event.case === "failed") return { result: undefined, reason: event.value.message };
    }
    throw new Error("the build had no end");
  }

  /** Removes every layer that the node does not need, as the control plane would. The layers of the base template are in its database. */
  async function collect(): Promise<void> {
    const { digests } = await node.client.listUnusedLayers({});
    for (const digest of digests) if (!base.includes(digest)) await node.client.deleteLayer({ digest });
  }

  async function expectComplete({ result, reason }: Ended, text: string): Promise<void> {
    expect(reason).toBe("");
    const id = `i${String(count).padStart(20, "0")}`;
    await node.client.createSandbox({ spec: node.spec(id, { layers: result?.layers ?? [] }) });
    expect(await node.readFile(id, "/srv/file")).toBe(text);
    await node.client.killSandbox({ sandboxId: id });
  }

  it("keep their layers beside a collection that never stops", async () => {
    let isOver = false;
    const collecting = (async () => {
      for (; !isOver; await new Promise(setImmediate)) await collect();
    })();
    try {
      for (let round = 0; round < BUILDS; round++) {
        // The first step is cached from the second round on, unless it is forced.
        const commands = ["mkdir -p /srv && echo shared > /srv/shared", `echo -n ${round} > /srv/file`];
        const [plain, forced] = [newId(), newId()];
        const ends = await Promise.all([build(plain, commands), build(forced, commands, true)]);
        for (const end of ends) await expectComplete(end, String(round));
        for (const buildId of [plain, forced]) await node.client.forgetBuild({ buildId });
      }
    } finally {
      isOver = true;
      await collecting;
    }
  });

  it("leave nothing when the node is killed, and go on from the finished step", async () => {
    const [buildId, commands] = [newId(), ["mkdir -p /srv; echo kept > /srv/kept", "echo -n late > /srv/file; sleep 30"]];
    const lost = build(buildId, commands);
    lost.catch(() => {});
    await waitUntil("the second step runs", async () => await isSaid(buildId, "[builder 2/2]"), 60_000);
    await node.kill9();
    await expect(lost).rejects.toThrow();
    await node.up();
    await expect(node.client.watchBuild({ buildId, from: 0n })[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: Code.NotFound,
    });
    await collect();
    await expectComplete(await build(buildId, [commands[0] ?? "", "echo -n late > /srv/file"]), "late");
    await node.client.forgetBuild({ buildId });
    const { layersDir } = node.options;
    expect(readdirSync(join(layersDir, "holds")).filter((name) => name.startsWith("build-"))).toEqual([]);
    await waitUntil("nothing that was unpacked halfway is left", () => readdirSync(join(layersDir, "staging")).length === 0, 60_000);
  });

  it("fail with a reason while the disk of the host has no room, and succeed when it has", async () => {
    const filler = join(node.dir, "filler");
    const { bavail, bsize } = statfsSync(node.dir);
    await runCommand("fallocate", ["--length", String(bavail * bsize - RESERVE + 64 * MIB), filler]);
    const commands = ["mkdir -p /srv; echo -n room > /srv/file"];
    const [refused, done] = [newId(), newId()];
    const end = await build(refused, commands, true).catch((error: unknown) => ({ reason: ConnectError.from(error).rawMessage }));
    expect(end.reason).toMatch(/disk/);
    expect(end.reason).not.toMatch(/ENOSPC|\/areas\//);
    await node.client.forgetBuild({ buildId: refused });
    rmSync(filler);
    await expectComplete(await build(done, commands, true), "room");
    await node.client.forgetBuild({ buildId: done });
  });

  async function isSaid(buildId: string, text: string): Promise<boolean> {
    const said = new AbortController();
    try {
      for await (const { event } of node.client.watchBuild({ buildId, from: 0n }, { signal: said.signal })) {
        if (event.case !== "line") return false;
        if (event.value.message.startsWith(text)) return true;
      }
    } catch (error) {
      if (ConnectError.from(error).code !== Code.NotFound) throw error;
    } finally {
      said.abort();
    }
    return false;
  }
});

/** A shell for the steps: the image of these tests has only busybox. */
async function bashLayer(node: ChildNode): Promise<string> {
  const layers = await openLayerStore(node.options.layersDir);
  const staged = await layers.stagingDir();
  mkdirSync(join(staged, "bin"));
  mkdirSync(join(staged, "srv"));
  copyFileSync("/bin/bash-static", join(staged, "bin/bash"));
  return await layers.adopt(staged);
}

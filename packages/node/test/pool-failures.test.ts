import { mkdtempSync, openSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseLayerDigest } from "@skerry/layers";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anotherLayer, type NodeUnderTest, startNode } from "./node-under-test.ts";

describe.each(runtimesFor("failures of a node's pool"))("the warm pool on %s", (runtime) => {
  const logs = mkdtempSync(join(tmpdir(), "pool-failures-"));
  const log = join(logs, "log");
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime, { poolSize: 2, logFd: openSync(log, "a") });
  });
  afterAll(async () => {
    await under?.[Symbol.asyncDispose]();
    rmSync(logs, { recursive: true });
  });

  let count = 0;
  const create = async (layer: string) => {
    count += 1;
    const sandboxId = `i${String(count).padStart(20, "0")}`;
    return under.client.createSandbox({ spec: { ...under.spec(sandboxId), templateId: layer.slice(0, 20), layers: [layer] } });
  };
  const readyOn = (layer: string) =>
    readdirSync(join(under.config.dir, "sandboxes"))
      .map((name) => readFileSync(join(under.config.dir, "sandboxes", name, "sandbox.json"), "utf8"))
      .filter((record) => record.includes('"state":"pooled"') && record.includes(layer)).length;

  it("is filled after a failure without another create, and a template that fails keeps no other one waiting", async () => {
    const { layers } = under.config;
    const broken = await anotherLayer(under);
    const path = await layers.path(parseLayerDigest(broken));
    for (const layer of [under.layer, broken]) await create(layer);
    for (const layer of [under.layer, broken]) await waitUntil("its pool is full", () => readyOn(layer) === 2);

    // It is the one with the fewest, and used last: the next to be filled, again and again.
    renameSync(path, `${path}.away`);
    expect((await create(under.layer)).startKind).toBe(StartKind.CLAIM);
    for (let at = 0; at < 2; at += 1) expect((await create(broken)).startKind).toBe(StartKind.CLAIM);
    await waitUntil("a failure is logged", () => readFileSync(log, "utf8").includes("could not be filled"));
    await waitUntil("the other one is filled", () => readyOn(under.layer) === 2);
    expect(readyOn(broken)).toBe(0);

    renameSync(`${path}.away`, path);
    await waitUntil("it is filled", () => readyOn(broken) === 2);
  });
});

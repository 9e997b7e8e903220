// kill -9 of a node at the crash points of builds. After its next start nothing of the build is left, and the same build succeeds.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openLayerStore, parseLayerDigest } from "@skerry/layers";
import { adoptBash } from "@skerry/testkit/bash-layer";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { casesOf, type Operation } from "./crash-points/plan.ts";
import { ChildNode } from "./node/child-node.ts";

const STEPS = [{ type: "RUN", args: ["echo of the build > /tmp/built"] }];

describe.each(["gvisor", "runc"] as const)("kill -9 of a node that builds on %s", (runtime) => {
  const cases = casesOf("a node's builds", runtime, ["build", "build on a snapshot"]);
  const points = (operation: Operation) => cases.filter((one) => one.operation === operation).map(({ point }) => point);
  let node: ChildNode;
  let bash: string;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime });
    const layers = await openLayerStore(node.options.layersDir);
    bash = await adoptBash(layers);
    await layers.hold("template", [node.layer, bash].map(parseLayerDigest));
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  let count = 0;
  const outcomeOf = async (source: { layers: string[] } | { imageId: string }) => {
    const buildId = `build-${++count}`;
    const spec = {
      buildId,
      templateId: "t",
      cacheScope: "team",
      source: { case: "template", value: { name: "base", ...source } },
      steps: STEPS,
      startCommand: "sleep 1000",
      readyCommand: "test -f /tmp/built",
      cpuCount: 1,
      memoryMb: 256,
      diskSizeMb: 64,
    } as const;
    await node.client.startBuild({ spec: spec as object });
    for await (const { event } of node.client.watchBuild({ buildId })) {
      if (event.case === "line") continue;
      await node.client.forgetBuild({ buildId });
      return event;
    }
    throw new Error("the build ended without an outcome");
  };
  const below = (folder: string) => readdirSync(join(node.options.layersDir, folder));
  const expectNothingLeft = async () => {
    await node.empty();
    expect(below("holds").filter((name) => name.startsWith("build-"))).toEqual([]);
    await waitUntil("staged trees are gone", () => below("staging").length === 0);
    expect(readdirSync(join(node.dir, "build-pulls"))).toEqual([]);
    const cached = readdirSync(join(node.dir, "build-cache"), { recursive: true, encoding: "utf8" });
    expect(cached.filter((name) => name.endsWith(".new"))).toEqual([]);
  };
  /** The removal of a layer is refused here, but the images of templates on it go. */
  const forget = async () => {
    await node.client.deleteLayer({ digest: node.layer });
    const images = () => readdirSync(join(node.dir, "images")).filter((name) => name.startsWith("t"));
    await waitUntil("the image of the template is gone", () => images().length === 0);
  };

  it.each(points("build"))("in a build at %s", async (point) => {
    await node.arm(point);
    STEPS[0]?.args.splice(0, 1, `echo at ${point} > /tmp/built`);
    await expect(outcomeOf({ layers: [node.layer, bash] })).rejects.toThrow();
    expect(await node.exited()).toBe("SIGKILL");
    await node.up();
    await forget();
    await expectNothingLeft();
    expect(await outcomeOf({ layers: [node.layer, bash] })).toMatchObject({ case: "succeeded" });
    await forget();
    await expectNothingLeft();
  });

  const onSnapshot = points("build on a snapshot");
  if (onSnapshot.length > 0) {
    it.each(onSnapshot)("in a build on a snapshot at %s", async (point) => {
      const [sandboxId, imageId] = ["i".repeat(21), "m".repeat(20)];
      await node.client.createSandbox({ spec: node.spec(sandboxId, { layers: [node.layer, bash] }) });
      await node.writeFile(sandboxId, "/home/of-the-snapshot", "here");
      await node.client.snapshotSandbox({ sandboxId, imageId, memory: false });
      await node.arm(point);
      await expect(outcomeOf({ imageId })).rejects.toThrow();
      expect(await node.exited()).toBe("SIGKILL");
      await node.up();
      expect(await outcomeOf({ imageId })).toMatchObject({ case: "succeeded" });
      await forget();
      await expectNothingLeft();
    });
  }
});

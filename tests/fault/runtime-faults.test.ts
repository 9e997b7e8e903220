// A runtime that hangs, fails, or still works when its daemon has ended. Also a guest or a disk that blocks an operation.

import { setTimeout as sleep } from "node:timers/promises";
import { sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ChildNode } from "./node/child-node.ts";
import { type OddNode, type OddRunsc, startOddNode } from "./node/odd-runsc.ts";

type Fault = readonly [how: "hang" | "fail" | "late", verb: "pause" | "checkpoint"];
const FAULTS: readonly Fault[] = [
  ["hang", "pause"],
  ["fail", "pause"],
  ["hang", "checkpoint"],
  ["fail", "checkpoint"],
  ["late", "checkpoint"],
];
/** Whatever hangs takes its whole time limit. */
const WRITES = sampleOf("faults of a runtime that writes a sandbox", FAULTS, ([how]) => how === "fail");
const STARTS = sampleOf("faults of a runtime that starts a sandbox", ["hang", "fail", "late"] as const, (how) => how === "fail");
const DELETIONS = sampleOf("faults of a runtime that deletes a sandbox", ["hang", "fail"] as const, (how) => how === "fail");
const RESTORES = sampleOf("faults of a runtime that restores a sandbox", ["hang", "late"] as const, (how) => how === "hang");

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

describe("with a runsc that misbehaves, a node", () => {
  let odd: OddNode;
  let runsc: OddRunsc;
  let node: ChildNode;
  beforeAll(async () => {
    const timeLimits = { start: 12_000, control: 8_000, checkpoint: 10_000, destroy: 6_000 };
    odd = await startOddNode({ timeLimits });
    ({ node, runsc } = odd);
  });
  afterAll(() => odd?.[Symbol.asyncDispose]());
  afterEach(() => odd.empty());

  const marked = async () => {
    const id = newId("i", 21);
    await node.client.createSandbox({ spec: node.spec(id) });
    await node.writeFile(id, "/root/file", "disk");
    await node.writeFile(id, "/dev/shm/memory", "memory");
    return id;
  };
  const expectMarks = async (id: string) => {
    expect([await node.readFile(id, "/root/file"), await node.readFile(id, "/dev/shm/memory")]).toEqual(["disk", "memory"]);
  };
  const pause = (sandboxId: string, imageId: string) => node.client.pauseSandbox({ sandboxId, imageId, memory: true });
  const resume = (id: string, imageId: string) => node.client.resumeSandbox({ spec: node.spec(id, { imageId }) });

  it.each(WRITES)("lets a sandbox run on as it was when its runtime does %s at %s", async (how, verb) => {
    const id = await marked();
    const imageId = newId("m", 20);
    runsc.misbehave(how, verb);
    await expect(pause(id, imageId)).rejects.toThrow(/could not be written/);
    await expect(node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true })).rejects.toThrow(/could not be written/);
    expect(await node.images()).toEqual([]);
    await expectMarks(id);
    runsc.behave();
    await pause(id, imageId);
    await resume(id, imageId);
    await expectMarks(id);
  });

  it.each(RESTORES)("keeps the memory for the next attempt when a restore does: %s", async (how) => {
    const id = await marked();
    const imageId = newId("m", 20);
    await pause(id, imageId);
    runsc.misbehave(how, "restore");
    await expect(resume(id, imageId)).rejects.toThrow();
    expect(await node.images()).toEqual([imageId]);
    runsc.behave();
    expect(await resume(id, imageId)).toMatchObject({ startKind: StartKind.RESTORE });
    await expectMarks(id);
  });

  it("boots a sandbox from its disk when a restore fails, and says why", async () => {
    const id = await marked();
    const imageId = newId("m", 20);
    await pause(id, imageId);
    runsc.misbehave("fail", "restore");
    const resumed = await resume(id, imageId);
    expect(resumed).toMatchObject({ startKind: StartKind.BOOT, memoryLostReason: expect.stringContaining("could not bring it back") });
    expect(await node.readFile(id, "/root/file")).toBe("disk");
  });

  it.each(STARTS)("leaves nothing over of a create whose runtime does: %s", async (how) => {
    runsc.misbehave(how, "run");
    await expect(node.client.createSandbox({ spec: node.spec(newId("i", 21)) })).rejects.toThrow();
    runsc.behave();
    await node.empty();
  });

  it.each(DELETIONS)("releases later what a kill could not release, when the deletion does: %s", async (how) => {
    const id = await marked();
    runsc.misbehave(how, "delete");
    await expect(node.client.killSandbox({ sandboxId: id })).rejects.toThrow();
    await expect(node.dial(id, 49_983)).rejects.toThrow();
    runsc.behave();
    await expect.poll(() => node.running()).toEqual([]);
  });

  it.each(["pause", "checkpoint"])("adopts the sandbox unchanged after a kill during %s", async (verb) => {
    const id = await marked();
    runsc.misbehave("slow", verb);
    const pausing = pause(id, newId("m", 20)).catch(() => {});
    await waitUntil("runsc is called", () => runsc.isSlowing());
    await node.kill9();
    await pausing;
    await node.up();
    expect(await node.running()).toEqual([id]);
    await expectMarks(id);
  });

  it("keeps the paused sandbox after a kill during a restore", async () => {
    const id = await marked();
    const imageId = newId("m", 20);
    await pause(id, imageId);
    runsc.misbehave("slow", "restore");
    const resuming = resume(id, imageId).catch(() => {});
    await waitUntil("runsc is called", () => runsc.isSlowing());
    await node.kill9();
    await resuming;
    await node.up();
    expect(await node.images()).toEqual([imageId]);
    runsc.behave();
    await resume(id, imageId);
    await expectMarks(id);
  });

  /** The second one ends runsc when it has begun its work. */
  it.each([0, 2_900])("leaves nothing over after a kill during a start, %d ms later", async (delayMs) => {
    runsc.misbehave("slow", "run");
    const creating = node.client.createSandbox({ spec: node.spec(newId("i", 21)) }).catch(() => {});
    await waitUntil("runsc is called", () => runsc.isSlowing());
    await node.kill9();
    await creating;
    await sleep(delayMs);
    await node.up();
    expect(await node.running()).toEqual([]);
  });
});

// kill -9 of a node at the crash points of its pool of ready sandboxes. After its next start nothing that was acknowledged is lost, and
// nothing else is left.

import { CRASH_POINTS } from "@skerry/node/crash-points";
import { describe, expect, it } from "vitest";
import { CRASH_CASES, casesOf, type Operation } from "./crash-points/plan.ts";
import { ChildNode } from "./node/child-node.ts";

let count = 0;
const newId = () => {
  count += 1;
  return `i${String(count).padStart(20, "0")}`;
};

it("every named point is reached by a test", () => {
  const reached = new Set(CRASH_CASES.map(({ point }) => point));
  expect([...CRASH_POINTS].filter((point) => !reached.has(point))).toEqual([]);
});

describe.each(["gvisor", "runc"] as const)("kill -9 of a node with a pool on %s", (runtime) => {
  const cases = casesOf("a node's pool", runtime, ["fill the pool", "claim"]);
  const points = (operation: Operation) => cases.filter((one) => one.operation === operation).map(({ point }) => point);

  it.each(points("fill the pool"))("while the pool is filled, at %s", async (point) => {
    await using node = await ChildNode.start({ runtime, poolSize: 1 });
    const first = newId();
    await node.client.createSandbox({ spec: node.spec(first) });
    await node.arm(point);
    // Another size starts another entry of the pool.
    await node.client.createSandbox({ spec: node.spec(newId(), { memoryMb: 200 }) }).catch(() => {});
    expect(await node.exited()).toBe("SIGKILL");
    await node.up();
    expect(await node.running()).toContain(first);
    const another = newId();
    await node.client.createSandbox({ spec: node.spec(another, { memoryMb: 200 }) });
    await node.writeFile(another, "/root/file", "it works");
    await expectNothingButThePool(node);
  });

  it.each(points("claim"))("while a sandbox is claimed, at %s", async (point) => {
    await using node = await ChildNode.start({ runtime, poolSize: 1 });
    await node.client.createSandbox({ spec: node.spec(newId()) });
    await expect.poll(() => node.ready()).toBe(1);
    await node.arm(point);
    const id = newId();
    await expect(node.client.createSandbox({ spec: node.spec(id, { accessToken: "of this one" }) })).rejects.toThrow();
    expect(await node.exited()).toBe("SIGKILL");
    await node.up();
    if ((await node.running()).includes(id)) await node.writeFile(id, "/root/file", "it works", "of this one");
    await expectNothingButThePool(node);
  });
});

/** After everything is killed and deleted, the next start without a pool finds only the images of templates. */
async function expectNothingButThePool(node: ChildNode): Promise<void> {
  for (const sandboxId of await node.running()) await node.client.killSandbox({ sandboxId });
  for (const imageId of await node.images()) await node.client.deleteImage({ imageId });
  await node.stop();
  const left = node.traces().filter((trace) => !trace.startsWith("areas/") && !trace.includes("/areas/") && !trace.startsWith("trash/"));
  expect(left).toEqual([]);
  await node.up();
}

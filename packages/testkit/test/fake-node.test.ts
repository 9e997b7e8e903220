import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { nodeContract } from "../src/contracts/node-contract.ts";
import { FakeNode } from "../src/fake-node.ts";
import { waitUntil } from "../src/wait-until.ts";

const SANDBOX_ID = `i${"a".repeat(20)}`;
const IMAGE_ID = "m".repeat(20);

for (const keepsMemory of [true, false]) {
  nodeContract({
    name: `fake ${keepsMemory ? "with" : "without"} memory`,
    keepsMemory,
    async start() {
      const node = new FakeNode("node1");
      node.keepsMemory = keepsMemory;
      return { client: node.client, spec: specOf, async [Symbol.asyncDispose]() {} };
    },
  });
}

function specOf(sandboxId: string) {
  return { sandboxId, templateId: "t", buildId: "b", layers: [`sha256:${"a".repeat(64)}`], options: {} };
}

describe("a fake node that a test makes misbehave", () => {
  const create = (node: FakeNode) => node.client.createSandbox({ spec: specOf(SANDBOX_ID) });
  const isHanging = (node: FakeNode) => waitUntil("a call hangs", () => node.hanging === 1);

  it("fails a method with the code that the test sets, and changes nothing", async () => {
    const node = new FakeNode("node1");
    node.create = Code.Internal;
    await expect(create(node)).rejects.toMatchObject({ code: Code.Internal });
    expect(node.held.size).toBe(0);
  });

  it("finishes a create that hangs when the sandbox is killed", async () => {
    const node = new FakeNode("node1");
    node.create = "hang";
    const created = create(node);
    await isHanging(node);
    expect(await node.client.killSandbox({ sandboxId: SANDBOX_ID })).toMatchObject({ existed: true });
    expect(await created).toMatchObject({ runtime: "gvisor" });
    expect(node.held.size).toBe(0);
  });

  it("stops a call that hangs when the caller gives up, also before its turn", async () => {
    const node = new FakeNode("node1");
    await create(node);
    node.pause = "hang";
    const pause = (timeoutMs: number) =>
      node.client.pauseSandbox({ sandboxId: SANDBOX_ID, imageId: IMAGE_ID, memory: true }, { timeoutMs }).catch(() => "gave up");
    const [first, second] = [pause(200), pause(100)];
    expect(await second).toBe("gave up");
    expect(node.hanging).toBe(1);
    expect(await first).toBe("gave up");
    expect(await node.client.killSandbox({ sandboxId: SANDBOX_ID })).toMatchObject({ existed: true });
    expect([node.hanging, node.images.size]).toEqual([0, 0]);
  });

  it("loses the answer to a pause that it has done", async () => {
    const node = new FakeNode("node1");
    await create(node);
    node.lost.set("pause", Code.Unavailable);
    const pause = { sandboxId: SANDBOX_ID, imageId: IMAGE_ID, memory: true };
    await expect(node.client.pauseSandbox(pause)).rejects.toMatchObject({ code: Code.Unavailable });
    node.lost.clear();
    expect(await node.client.pauseSandbox(pause)).toMatchObject({ hasMemory: true });
    expect([node.held.size, node.images.size]).toEqual([0, 1]);
  });

  it.each([true, false])("refuses to pause a silent sandbox without memory (keeps memory: %s)", async (keepsMemory) => {
    const node = new FakeNode("node1");
    node.keepsMemory = keepsMemory;
    await create(node);
    const sandbox = node.held.get(SANDBOX_ID);
    if (sandbox) sandbox.isSilent = true;
    const about = { sandboxId: SANDBOX_ID, imageId: IMAGE_ID };
    await expect(node.client.pauseSandbox({ ...about, memory: false })).rejects.toMatchObject({ code: Code.Unavailable });
    await expect(node.client.pauseSandbox({ ...about, memory: true, requireHealthyGuest: true })).rejects.toMatchObject({
      code: Code.Unavailable,
    });
    const pause = node.client.pauseSandbox({ ...about, memory: true });
    if (keepsMemory) expect(await pause).toMatchObject({ hasMemory: true, agentUnresponsive: true });
    else await expect(pause).rejects.toMatchObject({ code: Code.Unavailable });
  });
});

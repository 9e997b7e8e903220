import { nodeContract } from "../src/contracts/node-contract.ts";
import { FakeNode } from "../src/fake-node.ts";

for (const keepsMemory of [true, false]) {
  nodeContract({
    name: `fake ${keepsMemory ? "with" : "without"} memory`,
    keepsMemory,
    async start() {
      const node = new FakeNode("node1");
      node.keepsMemory = keepsMemory;
      return {
        client: node.client,
        spec: (sandboxId) => ({ sandboxId, templateId: "t", buildId: "b", layers: [`sha256:${"a".repeat(64)}`] }),
        async [Symbol.asyncDispose]() {},
      };
    },
  });
}

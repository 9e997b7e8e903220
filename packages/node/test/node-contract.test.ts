import { nodeContract } from "@skerry/testkit/contracts/node-contract";
import { startNode } from "./node-under-test.ts";

nodeContract({ name: "gvisor", keepsMemory: true, start: () => startNode("gvisor") });
nodeContract({ name: "runc", keepsMemory: false, start: () => startNode("runc") });

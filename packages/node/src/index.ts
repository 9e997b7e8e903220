export { cleanUpNode, type NodeCleanUp } from "./clean-up.privileged.ts";
export type { AgentTrees, NodeConfig } from "./config.ts";
export { createNode, type Node } from "./node.ts";

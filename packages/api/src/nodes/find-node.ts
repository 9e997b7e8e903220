import { PlatformError } from "@skerry/base";
import type { ErrorCode } from "@skerry/wire";
import type { NodeDirectory, NodeHandle } from "./directory.ts";

/** The node of a sandbox or an image. Throws where this process does not know it now, which proves nothing about what is on it. */
export function findNode(nodes: NodeDirectory, nodeId: string): NodeHandle {
  const node = nodes.list().find((candidate) => candidate.nodeId === nodeId);
  if (node) return node;
  throw new PlatformError<ErrorCode>("node_unreachable", `node ${nodeId} is not known here`);
}

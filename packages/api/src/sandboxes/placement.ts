import type { NodeHandle } from "../nodes/directory.ts";
import type { SandboxDeps } from "./deps.ts";

export interface PlacementCandidate {
  readonly nodeId: string;
  /** Sandboxes that the node has, or that are being started there. */
  readonly sandboxCount: number;
}

/** Picks the node with the fewest sandboxes for a new sandbox, the first by id among equals. Returns undefined when there is no node. */
export function placeSandbox<T extends PlacementCandidate>(candidates: readonly T[]): T | undefined {
  return candidates.toSorted((a, b) => a.sandboxCount - b.sandboxCount || (a.nodeId < b.nodeId ? -1 : 1))[0];
}

/** The node with the fewest sandboxes; undefined when there is none. */
export async function leastBusyNode({ store }: Pick<SandboxDeps, "store">, nodes: readonly NodeHandle[]): Promise<NodeHandle | undefined> {
  const counts = nodes.length > 1 ? await store.sandboxes.countByNode() : undefined;
  return placeSandbox(nodes.map((node) => ({ nodeId: node.nodeId, sandboxCount: counts?.get(node.nodeId) ?? 0, node })))?.node;
}

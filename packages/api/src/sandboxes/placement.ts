export interface PlacementCandidate {
  readonly nodeId: string;
  /** Sandboxes that it has or is about to have. */
  readonly sandboxCount: number;
}

/** Picks the node for a new sandbox: the one with the fewest; among equals the first by id. Undefined when there is none. */
export function placeSandbox<T extends PlacementCandidate>(candidates: readonly T[]): T | undefined {
  return candidates.toSorted((a, b) => a.sandboxCount - b.sandboxCount || (a.nodeId < b.nodeId ? -1 : 1))[0];
}

import type { NodeHandle } from "../../nodes/directory.ts";
import type { SandboxDeps } from "../deps.ts";

/** Deletes images on nodes that have no row in the database, after a delay. A row is written before its node is called. */
export class StrayImages {
  readonly #deps: Pick<SandboxDeps, "store" | "timing" | "logger">;
  /** When each image was seen for the first time, by node and image. Monotonic clock. */
  readonly #seen = new Map<string, number>();
  constructor(deps: Pick<SandboxDeps, "store" | "timing" | "logger">) {
    this.#deps = deps;
  }

  async look(node: NodeHandle, imageIds: ReadonlySet<string>): Promise<void> {
    const { store, timing, logger } = this.#deps;
    const known = await store.images.filterKnown([...imageIds]);
    const strays = new Set([...imageIds].filter((id) => !known.has(id)));
    const now = performance.now();
    for (const key of this.#seen.keys()) {
      const [nodeId, id = ""] = key.split("/");
      if (nodeId === node.nodeId && !strays.has(id)) this.#seen.delete(key);
    }
    for (const id of strays) {
      const key = `${node.nodeId}/${id}`;
      const since = this.#seen.get(key) ?? now;
      this.#seen.set(key, since);
      if (now - since < timing.strayImageMs) continue;
      const facts = { image_id: id, node_id: node.nodeId };
      try {
        await node.client.deleteImage({ imageId: id }, { timeoutMs: timing.killTimeoutMs });
        logger.warn(facts, "an image without a row in the database was deleted");
      } catch (error) {
        logger.warn({ err: error, ...facts }, "deleting an image without a row in the database failed");
      }
    }
  }
}

// Has nodes remove layers that no build of a template refers to.
//
// A node says which of its layers nothing on it uses; the database says which layers builds need. A layer that neither needs for
// `unusedLayerMs` on end is removed, and the node looks once more before it removes it. The time is measured with a monotonic clock,
// so a clock that is set forward removes nothing early. It covers the operations that refer to a layer without a trace in either place:
// a create that has read its build and has not reached the node yet, and a build that is just being added.
//
// Failure policy: a node or a database that does not answer removes nothing, and the time starts again.

import { Code, ConnectError } from "@connectrpc/connect";
import type { NodeHandle } from "../nodes/directory.ts";
import type { SandboxDeps } from "../sandboxes/deps.ts";

export class UnusedLayers {
  readonly #deps: Pick<SandboxDeps, "store" | "timing" | "logger">;
  readonly #nodes = new Map<string, Observed>();

  constructor(deps: Pick<SandboxDeps, "store" | "timing" | "logger">) {
    this.#deps = deps;
  }

  /** For a node that did not answer: what was seen of it counts for nothing. */
  startAgain({ nodeId }: NodeHandle): void {
    this.#nodes.delete(nodeId);
  }

  /** Looks at a node if the last look was `layerLookMs` ago. Never throws. */
  async look(node: NodeHandle): Promise<void> {
    const now = performance.now();
    const before = this.#nodes.get(node.nodeId);
    if (before && now - before.lookedAt < this.#deps.timing.layerLookMs) return;
    // Until this look has succeeded, there is nothing that it could go on from.
    this.#nodes.set(node.nodeId, { lookedAt: now, since: new Map() });
    try {
      const unused = await this.#findUnused(node);
      const since = new Map(unused.map((digest) => [digest, before?.since.get(digest) ?? now]));
      this.#nodes.set(node.nodeId, { lookedAt: now, since });
      for (const [digest, first] of since) {
        if (now - first >= this.#deps.timing.unusedLayerMs) await this.#delete(node, digest);
      }
    } catch (error) {
      // A node of an earlier version keeps its layers.
      if (error instanceof ConnectError && error.code === Code.Unimplemented) return;
      this.#deps.logger.warn({ err: error, node_id: node.nodeId }, "looking for unused layers failed");
    }
  }

  /** The node first: a build that is added meanwhile is in the database when that is asked. */
  async #findUnused(node: NodeHandle): Promise<readonly string[]> {
    const { store, timing } = this.#deps;
    const { digests } = await node.client.listUnusedLayers({}, { timeoutMs: timing.listTimeoutMs });
    if (digests.length === 0) return [];
    const needed = await store.templates.neededLayers();
    return digests.filter((digest) => !needed.has(digest));
  }

  async #delete(node: NodeHandle, digest: string): Promise<void> {
    const { timing, logger } = this.#deps;
    const { removed } = await node.client.deleteLayer({ digest }, { timeoutMs: timing.killTimeoutMs });
    if (removed) logger.info({ layer: digest, node_id: node.nodeId }, "a layer that no build refers to was removed");
  }
}

interface Observed {
  readonly lookedAt: number;
  /** When each unused layer was seen as such first. */
  readonly since: ReadonlyMap<string, number>;
}

// Collects from each node what its sandboxes reached. Every API process collects everything: a batch is stored once, whoever delivers it.
//
// Failure policy: a node that does not answer, or a database that is away, delays the lines. The node keeps them, up to a bound of each sandbox.

import type { Clock, Logger } from "@skerry/base";
import type { EgressRepository } from "@skerry/store";
import type { EgressBatch } from "@skerry/wire/node";
import type { NodeHandle } from "../nodes/directory.ts";
import type { Nodes } from "../nodes/nodes.ts";

/** Batches of one node in one round, so that no node keeps the others waiting. */
const BATCHES_AT_ONCE = 20;

export interface EgressCollectorDeps {
  readonly nodes: Nodes;
  readonly egress: EgressRepository;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutMs: number;
}

export class EgressCollector {
  readonly #deps: EgressCollectorDeps;
  /** By node: the last batch that is stored. */
  readonly #stored = new Map<string, { readonly source: string; readonly number: bigint }>();
  constructor(deps: EgressCollectorDeps) {
    this.#deps = deps;
  }

  /** Collects from all nodes what they have. */
  async collect(): Promise<void> {
    const { nodes, logger } = this.#deps;
    await Promise.all(
      nodes.list().map((node) =>
        this.#collectFrom(node).catch((error: unknown) => {
          logger.debug({ err: error, node_id: node.nodeId }, "collecting egress logs from a node failed");
        }),
      ),
    );
  }

  async #collectFrom(node: NodeHandle): Promise<void> {
    const { egress, clock, timeoutMs } = this.#deps;
    for (let count = 0; count < BATCHES_AT_ONCE; count += 1) {
      const { nowMs, batch } = await node.client.readEgress(this.#stored.get(node.nodeId) ?? {}, { timeoutMs });
      if (!batch) return;
      const now = clock.now();
      await egress.add(batchOf(batch, Number(nowMs) - now), now);
      this.#stored.set(node.nodeId, { source: batch.source, number: batch.number });
    }
  }
}

function batchOf({ source, number, lines, counts }: EgressBatch, aheadMs: number) {
  return {
    source,
    number: Number(number),
    lines: lines.map((line) => ({
      sandboxId: line.sandboxId,
      at: Number(line.atMs) - aheadMs,
      protocol: line.protocol,
      name: line.name,
      address: line.address,
      port: line.port,
      sentBytes: Number(line.sentBytes),
      receivedBytes: Number(line.receivedBytes),
      isAllowed: line.isAllowed,
      rule: line.rule,
      count: Number(line.count),
    })),
    counts: counts.map((one) => ({
      sandboxId: one.sandboxId,
      sentBytes: Number(one.sentBytes),
      receivedBytes: Number(one.receivedBytes),
      connections: Number(one.connections),
      refused: Number(one.refused),
    })),
  };
}

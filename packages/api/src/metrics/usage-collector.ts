// Collects from each node what its sandboxes used. Every API process collects everything: the same measurement twice is one row.
//
// Failure policy: a node that does not answer, or a database that is away, delays the rows. The node has the rounds of the last ten minutes.

import type { Clock, Logger } from "@skerry/base";
import type { SandboxMetric, SandboxMetricRepository } from "@skerry/store";
import { METRIC_STEPS } from "@skerry/store";
import type { SandboxUsage } from "@skerry/wire/node";
import type { NodeHandle } from "../nodes/directory.ts";
import type { Nodes } from "../nodes/nodes.ts";

const STEP_MS = METRIC_STEPS[0].stepMs;
/** How far before the newest row the first question reaches: another node may have been slower. */
const OVERLAP_MS = 60_000;
/** Sandboxes of a round that are stored. A node runs hundreds. */
const MAX_OF_ROUND = 10_000;

export interface UsageCollectorDeps {
  readonly nodes: Nodes;
  readonly sandboxMetrics: SandboxMetricRepository;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutMs: number;
}

export class UsageCollector {
  readonly #deps: UsageCollectorDeps;
  /** By node: the last round that is stored, in the time of the node's clock. */
  readonly #stored = new Map<string, bigint>();
  #firstAfter: number | undefined;
  constructor(deps: UsageCollectorDeps) {
    this.#deps = deps;
  }

  /** Collects from all nodes what they have. */
  async collect(): Promise<void> {
    const { nodes, sandboxMetrics, logger } = this.#deps;
    this.#firstAfter ??= ((await sandboxMetrics.newestAt(STEP_MS)) ?? OVERLAP_MS) - OVERLAP_MS;
    await Promise.all(
      nodes.list().map((node) =>
        this.#collectFrom(node).catch((error: unknown) => {
          logger.debug({ err: error, node_id: node.nodeId }, "collecting metrics from a node failed");
        }),
      ),
    );
  }

  async #collectFrom(node: NodeHandle): Promise<void> {
    const { sandboxMetrics, clock, timeoutMs } = this.#deps;
    for (;;) {
      const afterMs = this.#stored.get(node.nodeId) ?? BigInt(this.#firstAfter ?? 0);
      const { nowMs, rounds } = await node.client.readUsage({ afterMs }, { timeoutMs });
      const last = rounds.at(-1)?.atMs;
      // A node whose clock was set back has no rounds after the last one, until it says so.
      if (afterMs > nowMs) this.#stored.set(node.nodeId, nowMs);
      if (last === undefined) return;
      const aheadMs = Number(nowMs) - clock.now();
      const metrics = rounds.flatMap(({ atMs, sandboxes }) => {
        const at = Math.round((Number(atMs) - aheadMs) / STEP_MS) * STEP_MS;
        return sandboxes.slice(0, MAX_OF_ROUND).map((usage) => metricOf(usage, at));
      });
      await sandboxMetrics.add(metrics, STEP_MS);
      this.#stored.set(node.nodeId, last);
    }
  }
}

function metricOf(usage: SandboxUsage, at: number): SandboxMetric {
  return {
    sandboxId: usage.sandboxId,
    at,
    cpuCount: usage.cpuCount,
    cpuPercent: usage.cpuPercent,
    memoryUsedBytes: Number(usage.memoryUsedBytes),
    memoryTotalBytes: Number(usage.memoryTotalBytes),
    memoryCacheBytes: Number(usage.memoryCacheBytes),
    diskUsedBytes: Number(usage.diskUsedBytes),
    diskTotalBytes: Number(usage.diskTotalBytes),
  };
}

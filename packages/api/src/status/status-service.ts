import type { Clock } from "@skerry/base";
import type { EventRepository, PlatformCountRepository, PlatformCounts } from "@skerry/store";
import type { NodeService, NodeStatus, ShownNode } from "../nodes/node-service.ts";

/** A node, what it has prepared for starts, and how busy it is with them. Null: it does not answer. */
export interface NodeReadiness {
  readonly nodeId: string;
  readonly status: NodeStatus;
  readonly readySandboxes: number | null;
  readonly startsRunning: number | null;
  readonly startsWaiting: number | null;
}

export interface PlatformStatus extends PlatformCounts {
  readonly nodes: readonly NodeReadiness[];
  /** Round trip of the simplest query. */
  readonly databaseMs: number;
  /** Age of the oldest event that no reader can see yet. */
  readonly eventLagMs: number;
  /** Of this API process. */
  readonly uptimeMs: number;
  readonly memoryBytes: number;
}

export interface StatusServiceDeps {
  readonly counts: PlatformCountRepository;
  readonly events: EventRepository;
  readonly nodes: NodeService;
  readonly clock: Clock;
}

export class StatusService {
  readonly #deps: StatusServiceDeps;
  constructor(deps: StatusServiceDeps) {
    this.#deps = deps;
  }

  async read(): Promise<PlatformStatus> {
    const { counts, events, nodes, clock } = this.#deps;
    const begun = performance.now();
    await counts.ping();
    const databaseMs = performance.now() - begun;
    const [counted, eventLagMs, shown] = await Promise.all([counts.read(), events.lagMs(clock.now()), nodes.list()]);
    return {
      ...counted,
      nodes: shown.map(readinessOf),
      databaseMs,
      eventLagMs,
      uptimeMs: process.uptime() * 1000,
      memoryBytes: process.memoryUsage.rss(),
    };
  }
}

function readinessOf({ nodeId, status, info }: ShownNode): NodeReadiness {
  const { readySandboxes = null, startsRunning = null, startsWaiting = null } = info?.readiness ?? {};
  return { nodeId, status, readySandboxes, startsRunning, startsWaiting };
}

import type { Clock } from "@skerry/base";
import type { NodeLoad, NodeRepository, NodeStatusEntry, SetNodeStatus } from "@skerry/store";
import type { GetInfoResponse } from "@skerry/wire/node";
import { publicError } from "../errors.ts";
import type { NodeHandle } from "./directory.ts";
import type { CreateCounts, Nodes } from "./nodes.ts";

/** What the operator set, or `unhealthy` when the node does not answer. A node that has never answered has no id yet and is not listed. */
export type NodeStatus = SetNodeStatus | "connecting" | "unhealthy";

const SETTABLE: ReadonlySet<NodeStatus> = new Set(["ready", "draining", "standby"]);

export interface ShownNode {
  readonly nodeId: string;
  readonly status: NodeStatus;
  readonly statusChangedAt: number;
  readonly load: NodeLoad;
  readonly creates: CreateCounts;
  /** Undefined when the node does not answer. */
  readonly info: GetInfoResponse | undefined;
}

export interface NodeServiceDeps {
  readonly nodes: Nodes;
  readonly repository: NodeRepository;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

const NO_LOAD: NodeLoad = { sandboxes: 0, starting: 0, cpuCount: 0, memoryMb: 0 };

/** The nodes as the operator sees and sets them. */
export class NodeService {
  readonly #deps: NodeServiceDeps;
  readonly #startedAt: number;
  constructor(deps: NodeServiceDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  async list(): Promise<readonly ShownNode[]> {
    const nodes = this.#deps.nodes.list().toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
    return await this.#show(nodes);
  }

  async find(nodeId: string): Promise<ShownNode | undefined> {
    const node = this.#deps.nodes.find(nodeId);
    return node && (await this.#show([node]))[0];
  }

  /** Returns false for an unknown node. Throws for a status that only the platform finds out. */
  async setStatus(nodeId: string, status: NodeStatus): Promise<boolean> {
    const { nodes, repository, clock } = this.#deps;
    if (!nodes.find(nodeId)) return false;
    if (!SETTABLE.has(status)) throw publicError("conflict", `The status of a node cannot be set to '${status}'`);
    await repository.setStatus(nodeId, status as SetNodeStatus, clock.now());
    return true;
  }

  /** The number of running sandboxes of each team that has any. */
  async runningByTeam(): Promise<ReadonlyMap<string, number>> {
    return await this.#deps.repository.runningByTeam();
  }

  async #show(nodes: readonly NodeHandle[]): Promise<readonly ShownNode[]> {
    const { repository } = this.#deps;
    const [statuses, loads, infos] = await Promise.all([
      repository.statuses(),
      repository.loads(),
      Promise.all(nodes.map((node) => this.#ask(node))),
    ]);
    return nodes.map(({ nodeId }, index) => ({
      nodeId,
      ...this.#statusOf(nodeId, infos[index], statuses.get(nodeId)),
      load: loads.get(nodeId) ?? NO_LOAD,
      creates: this.#deps.nodes.creates(nodeId),
      info: infos[index],
    }));
  }

  #statusOf(
    nodeId: string,
    info: GetInfoResponse | undefined,
    set: NodeStatusEntry | undefined,
  ): Pick<ShownNode, "status" | "statusChangedAt"> {
    const silentSince = this.#deps.nodes.silentSince(nodeId);
    if (!info) return { status: "unhealthy", statusChangedAt: silentSince ?? this.#deps.clock.now() };
    return { status: set?.status ?? "ready", statusChangedAt: set?.changedAt ?? this.#startedAt };
  }

  async #ask(node: NodeHandle): Promise<GetInfoResponse | undefined> {
    try {
      return await node.client.getInfo({}, { timeoutMs: this.#deps.timeoutMs });
    } catch (error) {
      this.#deps.nodes.failed(node.nodeId, error);
      return undefined;
    }
  }
}

import { type Logger, PlatformError } from "@skerry/base";
import type { NodeDirectory, NodeHandle } from "./directory.ts";

export interface CreateCounts {
  readonly successes: number;
  readonly failures: number;
}

/** The nodes as this process knows them: by id, and whether each of them answers. */
export class Nodes {
  readonly #directory: NodeDirectory;
  readonly #logger: Logger;
  /** Since when each of the silent nodes is. */
  readonly #silent = new Map<string, number>();
  readonly #creates = new Map<string, CreateCounts>();
  constructor(directory: NodeDirectory, logger: Logger) {
    this.#directory = directory;
    this.#logger = logger;
  }

  list(): readonly NodeHandle[] {
    return this.#directory.list();
  }

  /** The nodes to place new work on, without the closed ones: those that answer, or all of them when none does. */
  candidates(closed: ReadonlySet<string>): readonly NodeHandle[] {
    const all = this.list().filter(({ nodeId }) => !closed.has(nodeId));
    const answering = all.filter(({ nodeId }) => !this.#silent.has(nodeId));
    return answering.length > 0 ? answering : all;
  }

  /**
   * Those of the candidates that have layers of which only one node is known to have them. An only node is a candidate in any case: its name
   * changes with the name of its host.
   */
  candidatesWith(layersNodeId: string | undefined, closed: ReadonlySet<string>): readonly NodeHandle[] {
    if (layersNodeId === undefined || this.list().length === 1) return this.candidates(closed);
    const node = this.find(layersNodeId);
    return node && !closed.has(layersNodeId) ? [node] : [];
  }

  find(nodeId: string): NodeHandle | undefined {
    return this.list().find((node) => node.nodeId === nodeId);
  }

  /** The node of a sandbox or an image. Throws for an unknown node, which says nothing about the sandboxes on it. */
  get(nodeId: string): NodeHandle {
    const node = this.find(nodeId);
    if (node) return node;
    throw new PlatformError("node_unreachable", `node ${nodeId} is not known here`);
  }

  answered(nodeId: string): void {
    if (this.#silent.delete(nodeId)) this.#logger.info({ node_id: nodeId }, "a node answers again");
  }

  failed(nodeId: string, error: unknown): void {
    if (!this.#silent.has(nodeId)) this.#logger.warn({ err: error, node_id: nodeId }, "a node does not answer");
    if (!this.#silent.has(nodeId)) this.#silent.set(nodeId, Date.now());
  }

  /** Since when the node has not answered; undefined while it does. */
  silentSince(nodeId: string): number | undefined {
    return this.#silent.get(nodeId);
  }

  /** Counts a start of a new sandbox. */
  countCreate(nodeId: string, ended: keyof CreateCounts): void {
    const counts = this.creates(nodeId);
    this.#creates.set(nodeId, { ...counts, [ended]: counts[ended] + 1 });
  }

  /** Starts of new sandboxes on the node by this process. */
  creates(nodeId: string): CreateCounts {
    return this.#creates.get(nodeId) ?? { successes: 0, failures: 0 };
  }
}

import pLimit, { type LimitFunction } from "p-limit";

/** Work that waits for nodes: so much at once for each of them, so that one that does not answer holds up nobody else's. */
export class NodeTurns {
  readonly #atOnce: number;
  readonly #turns = new Map<string, LimitFunction>();
  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  run<T>(nodeId: string, work: () => Promise<T>): Promise<T> {
    const turns = this.#turns.get(nodeId) ?? pLimit(this.#atOnce);
    this.#turns.set(nodeId, turns);
    return turns(work);
  }
}

import { AGENT_PORT, type Target } from "@skerry/wire";

/**
 * Limits the requests and upgraded connections that each sandbox has at a time, so that one sandbox cannot use up the edge. The agent's
 * port is counted by itself: a flood on the other ports does not keep the owner from the sandbox.
 */
export class SandboxConnections {
  readonly limit: number;
  readonly #open = new Map<string, number>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Counts a request until the signal is aborted, which is when its client has gone or has the whole response. False: there are too many. */
  take({ sandboxId, port }: Target, signal: AbortSignal): boolean {
    const key = port === AGENT_PORT ? `${sandboxId} agent` : sandboxId;
    const open = this.#open.get(key) ?? 0;
    if (open >= this.limit) return false;
    if (signal.aborted) return true;
    this.#open.set(key, open + 1);
    signal.addEventListener("abort", () => this.#giveBack(key), { once: true });
    return true;
  }

  /** The number of sandboxes with open connections, the agents counted separately. */
  get size(): number {
    return this.#open.size;
  }

  #giveBack(key: string): void {
    const left = (this.#open.get(key) ?? 0) - 1;
    if (left > 0) this.#open.set(key, left);
    else this.#open.delete(key);
  }
}

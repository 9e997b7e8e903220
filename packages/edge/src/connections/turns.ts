// Node emits each pipelined request as soon as it is parsed, even if earlier requests have no response yet. The edge handles the
// requests of a connection one after the other. A connection thus has at most one stream to a sandbox, and the current response
// is always attached to the connection, so its `close` event is always emitted.

import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Maximum number of pipelined requests that wait on one connection. A client that sends more is reset. */
const MAX_WAITING = 256;

export class Turns {
  readonly #queues = new WeakMap<Duplex, (() => void)[]>();

  /** Calls `start` once all earlier requests on the connection are answered. Returns false, and never calls it, if too many wait. */
  take(client: Duplex, res: ServerResponse, start: () => void): boolean {
    const queue = this.#queues.get(client) ?? [];
    if (queue.length > MAX_WAITING) return false;
    this.#queues.set(client, queue);
    queue.push(start);
    res.once("close", () => {
      queue.shift();
      if (!client.destroyed) queue[0]?.();
    });
    if (queue.length === 1) start();
    return true;
  }

  /** Returns whether a request on this connection is still unanswered. */
  isBusy(client: Duplex): boolean {
    return (this.#queues.get(client)?.length ?? 0) > 0;
  }
}

// Node hands over every request of a connection as soon as it is parsed, whether the ones before it are answered or not.
// Requests take turns instead: a connection holds at most one stream to a sandbox, and the response whose turn it is always
// has the connection, so that its `close` event comes whatever happens.

import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Requests of one connection that may wait for the one before them. */
const MAX_WAITING = 256;

export class Turns {
  readonly #queues = new WeakMap<Duplex, (() => void)[]>();

  /** Calls `start` when everything before `res` on this connection is answered. False, and never, when too many wait. */
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

  /** True when a request on this connection is not answered yet. */
  isBusy(client: Duplex): boolean {
    return (this.#queues.get(client)?.length ?? 0) > 0;
  }
}

import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** What a request asks its connection for: see `OutsideAgent`. */
export interface OutsideArgs extends ClientRequestArgs {
  readonly open: () => Promise<Socket>;
}

/**
 * Keeps the connections to the outside that belong to one connection of a sandbox: one for each host, for one request at a time. They are
 * never used for another client.
 */
export class OutsideAgent extends Agent {
  readonly #onClosed: () => void;

  constructor(onClosed: () => void) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1 });
    this.#onClosed = onClosed;
  }

  override createConnection(options: object, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    const { open } = options as OutsideArgs;
    open().then(
      (stream) => {
        stream.once("close", this.#onClosed);
        callback?.(null, stream);
      },
      (error: Error) => callback?.(error, undefined as unknown as Duplex),
    );
    return undefined;
  }
}

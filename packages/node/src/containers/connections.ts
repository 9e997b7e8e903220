import { setTimeout as sleep } from "node:timers/promises";
import type { RelaySocket } from "@skerry/base";

/** A server that does not answer must not delay a snapshot. */
const OPENING_LIMIT_MS = 1_000;
/**
 * After its handshake, the time that a sandbox's kernel has for a connection to reach the queue of the server. Without it, one snapshot in
 * ten lost a connection of three clients that connected all the time; with 20 ms it was one in 120, and with 60 ms none in 180.
 */
const SETTLE_MS = 60;

/** The connections from this node into a container. The node resets them at its end: nothing else tells their peers. */
export class Connections {
  readonly #open = new Set<RelaySocket>();
  readonly #opening = new Set<Promise<unknown>>();
  #openedAt = Number.NEGATIVE_INFINITY;

  /** Opens a connection and keeps it in mind until it closes. */
  async open<T extends RelaySocket | undefined>(connect: () => Promise<T>): Promise<T> {
    const opening = connect();
    this.#opening.add(opening);
    try {
      const socket = await opening;
      if (socket && !socket.destroyed) {
        this.#open.add(socket);
        socket.once("close", () => this.#open.delete(socket));
      }
      return socket;
    } finally {
      this.#openedAt = performance.now();
      this.#opening.delete(opening);
    }
  }

  /**
   * Resolves when no connection is being opened. gVisor loses one whose handshake ends while it writes its memory: after the restore it
   * acknowledges the client's data, and no server ever accepts it. Preconditions: nobody opens further ones.
   */
  async settle(): Promise<void> {
    const limit = new AbortController();
    const opened = Promise.allSettled(this.#opening);
    await Promise.race([opened, sleep(OPENING_LIMIT_MS, undefined, { signal: limit.signal }).catch(() => undefined)]);
    limit.abort();
    const left = this.#openedAt + SETTLE_MS - performance.now();
    if (left > 0) await sleep(left);
  }

  /** Keeps what arrives for the container from now on, until the returned function is called. */
  hold(): () => void {
    const held = [...this.#open];
    for (const socket of held) socket.cork();
    return () => {
      for (const socket of held) socket.uncork();
    };
  }

  reset(): void {
    for (const socket of this.#open) socket.resetAndDestroy();
  }
}

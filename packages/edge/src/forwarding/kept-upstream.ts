// The connection to a server in a sandbox that one connection of a client keeps for its next request. Opening one costs more than a small
// answer, in the sandbox above all.
//
// Invariants, which make sure that no request gets the answer to another, and that no client can write into the connection of another:
// - A connection belongs to one connection of a client, and to one port of one run of a sandbox.
// - Only GET and HEAD requests without a body use it, one after the other, each with all checks of a first request.
// - It is closed by anything that the server sends after an answer, by an answer whose end is the end of the connection, and after a short time.
// - It is offered to the server only if the client has just asked the same port before, so that single requests leave nothing open.

import type { Duplex } from "node:stream";
import { setImmediate as afterPoll } from "node:timers/promises";

interface Idle {
  readonly stream: Duplex;
  readonly leadsTo: string;
  readonly timer: NodeJS.Timeout;
}

export class KeptUpstream {
  readonly #idleMs: number;
  #idle: Idle | undefined;
  #lastAnswer = { leadsTo: "", at: Number.NEGATIVE_INFINITY };

  constructor(client: Duplex, idleMs: number) {
    this.#idleMs = idleMs;
    client.once("close", () => this.close());
  }

  /** Notes that the client has an answer from there. */
  noteAnswer(leadsTo: string): void {
    this.#lastAnswer = { leadsTo, at: performance.now() };
  }

  /** Whether the client got its last answer from there a short time ago, and asks again. */
  isAskedAgain(leadsTo: string): boolean {
    return this.#lastAnswer.leadsTo === leadsTo && performance.now() - this.#lastAnswer.at < this.#idleMs;
  }

  /** Returns the open connection that leads there, which the caller then owns, and closes one that leads elsewhere. */
  async take(leadsTo: string): Promise<Duplex | undefined> {
    if (this.#idle === undefined) return undefined;
    // After it, everything that had arrived from the server has been seen: an end, or bytes that would be taken for the next answer.
    await afterPoll();
    const idle = this.#idle;
    if (idle === undefined) return undefined;
    if (idle.leadsTo !== leadsTo || !idle.stream.writable) {
      this.close();
      return undefined;
    }
    this.#forget(idle);
    return idle.stream;
  }

  /** Keeps a connection after a complete answer. Its owner must have added a listener for errors. */
  put(stream: Duplex, leadsTo: string): void {
    this.close();
    if (stream.destroyed || stream.readableEnded || stream.readableLength > 0) {
      stream.destroy();
      return;
    }
    this.#idle = { stream, leadsTo, timer: setTimeout(this.close, this.#idleMs).unref() };
    stream.on("data", this.close).on("end", this.close).on("close", this.close);
    stream.resume();
  }

  readonly close = (): void => {
    const idle = this.#idle;
    if (idle === undefined) return;
    this.#forget(idle);
    idle.stream.destroy();
  };

  #forget({ stream, timer }: Idle): void {
    this.#idle = undefined;
    clearTimeout(timer);
    stream.off("data", this.close).off("end", this.close).off("close", this.close);
  }
}

/** The kept connection of each connection of a client. */
export class KeptUpstreams {
  readonly #idleMs: number;
  readonly #kept = new WeakMap<Duplex, KeptUpstream>();

  /** 0: none is kept. */
  constructor(idleMs: number) {
    this.#idleMs = idleMs;
  }

  of(client: Duplex): KeptUpstream {
    const known = this.#kept.get(client);
    if (known) return known;
    const kept = new KeptUpstream(client, this.#idleMs);
    this.#kept.set(client, kept);
    return kept;
  }
}

// One follower of one process. Each follower has its own queue, so one that stops reading never starves another.
//
// Flow control: the agent reads the process's output while at least one follower keeps up. So a single slow follower slows the process
// down, as a pipe would, and loses nothing. Beside a faster one it may lag MAX_LAG_BYTES behind. Then it is cut off with an error,
// because its queue would grow without a limit.

import { Code, ConnectError } from "@connectrpc/connect";
import { Wakeup } from "../../wakeup.ts";
import type { EndFields } from "./exit-status.ts";

export type OutputStream = "stdout" | "stderr" | "pty";

export type ProcessEvent =
  | { readonly case: "start"; readonly value: { readonly pid: number } }
  | { readonly case: "data"; readonly value: { readonly output: { readonly case: OutputStream; readonly value: Uint8Array<ArrayBuffer> } } }
  | { readonly case: "end"; readonly value: EndFields }
  | { readonly case: "keepalive"; readonly value: Record<never, never> };

/** Queued output at which a follower counts as full. */
const HIGH_WATER_BYTES = 512 * 1024;
/** Queued output at which a follower is cut off. It bounds the agent's memory per stream. */
const MAX_LAG_BYTES = 16 * 1024 * 1024;

export class Subscriber {
  readonly #queue: ProcessEvent[] = [];
  readonly #onChange: () => void;
  #queuedBytes = 0;
  #closed = false;
  #failure: ConnectError | undefined;
  readonly #wakeup = new Wakeup();

  /** `onChange` is called when the follower is no longer full, or has failed. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get isFull(): boolean {
    return this.#queuedBytes >= HIGH_WATER_BYTES;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  push(event: ProcessEvent, bytes: number): void {
    if (this.#closed) return;
    this.#queue.push(event);
    this.#queuedBytes += bytes;
    if (this.#queuedBytes > MAX_LAG_BYTES) this.fail(new ConnectError("the stream was not read fast enough", Code.ResourceExhausted));
    this.#wakeup.wake();
  }

  /** Ends the stream; queued events are still delivered. */
  close(): void {
    this.#closed = true;
    this.#wakeup.wake();
  }

  /** Ends the stream with an error now, and drops queued events. */
  fail(error: ConnectError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.close();
    this.#onChange();
  }

  /** The next event; `idle` when none came within `idleMs`; undefined at the end. */
  async next(idleMs: number): Promise<ProcessEvent | "idle" | undefined> {
    if (this.#queue.length === 0 && !this.#closed) await this.#wakeup.wait(idleMs);
    if (this.#failure) throw this.#failure;
    const event = this.#queue.shift();
    if (event === undefined) return this.#closed ? undefined : "idle";
    const wasFull = this.isFull;
    this.#queuedBytes -= event.case === "data" ? (event.value.output.value?.length ?? 0) : 0;
    if (wasFull && !this.isFull) this.#onChange();
    return event;
  }
}

// Events that a client has not fetched yet.
//
// Failure policy: events are never dropped silently. A buffer that exceeds its limit fails, and every later reader gets the error. A
// client that knows that it missed events can look again.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { EventType, FilesystemEventSchema } from "@skerry/wire/filesystem";
import { Wakeup } from "../../wakeup.ts";
import type { Entry } from "../entry.ts";

export interface WatchEvent {
  readonly name: string;
  readonly type: EventType;
  readonly entry: Promise<Entry | undefined> | undefined;
}

/** Estimated memory of all buffers of the agent together. */
export interface SharedMemory {
  usedBytes: number;
}

/** Limit on the estimated memory of one buffer. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Estimated memory of an event without its name and entry. */
const EVENT_BYTES = 128;
/** Estimated memory of an entry. */
const ENTRY_BYTES = 1024;
/** Number of fetched events after which the array is shortened. Each shortening moves all remaining events. */
const COMPACT_AFTER = 1024;

export class EventBuffer {
  #events: WatchEvent[] = [];
  #taken = 0;
  #usedBytes = 0;
  #failure: ConnectError | undefined;
  readonly #wakeup = new Wakeup();
  readonly #shared: SharedMemory;

  constructor(shared: SharedMemory) {
    this.#shared = shared;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get failure(): ConnectError | undefined {
    return this.#failure;
  }

  push(event: WatchEvent): void {
    if (this.#failure) return;
    this.#events.push(event);
    this.#account(sizeOf(event));
    if (this.#usedBytes > MAX_BYTES) this.failUnread();
    this.#wakeup.wake();
  }

  failUnread(): void {
    this.fail(new ConnectError("watcher error: events were not read fast enough and are lost; watch again", Code.ResourceExhausted));
  }

  /** From now on every reader gets this error. Buffered events are dropped. */
  fail(error: ConnectError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.clear();
    this.#wakeup.wake();
  }

  clear(): void {
    this.#events = [];
    this.#taken = 0;
    this.#account(-this.#usedBytes);
  }

  takeAll(): WatchEvent[] {
    if (this.#failure) throw this.#failure;
    const events = this.#taken === 0 ? this.#events : this.#events.slice(this.#taken);
    this.clear();
    return events;
  }

  /** The next event; `idle` when none came within `idleMs`. */
  async next(idleMs: number): Promise<WatchEvent | "idle"> {
    if (this.#events.length === 0 && !this.#failure) await this.#wakeup.wait(idleMs);
    if (this.#failure) throw this.#failure;
    const event = this.#events[this.#taken];
    if (event === undefined) return "idle";
    this.#taken++;
    this.#account(-sizeOf(event));
    if (this.#taken === this.#events.length) this.clear();
    else if (this.#taken >= COMPACT_AFTER) this.#compact();
    return event;
  }

  #compact(): void {
    this.#events.splice(0, this.#taken);
    this.#taken = 0;
  }

  #account(bytes: number): void {
    this.#usedBytes += bytes;
    this.#shared.usedBytes += bytes;
  }
}

/** The event as a message, once the description of its file is there. */
export async function eventMessage(event: WatchEvent): Promise<MessageInitShape<typeof FilesystemEventSchema>> {
  const entry = await event.entry;
  return { name: event.name, type: event.type, ...(entry ? { entry } : {}) };
}

function sizeOf(event: WatchEvent): number {
  return EVENT_BYTES + event.name.length + (event.entry ? ENTRY_BYTES : 0);
}

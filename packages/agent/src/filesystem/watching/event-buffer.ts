// Events that a client has not taken yet.
//
// Failure policy: events are never dropped in silence. A buffer that grows past its limit fails instead, and says so to
// every later reader: a client that knows it missed something can look again, one that does not cannot.

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

/** Memory that all buffers of the agent take together, as estimated here. */
export interface SharedMemory {
  usedBytes: number;
}

const MAX_BYTES = 16 * 1024 * 1024;
const EVENT_BYTES = 128;
const ENTRY_BYTES = 1024;
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

  /** Every reader gets this error from now on; what is buffered is dropped. */
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

  // Removing each event from the front by itself would move the whole rest every time.
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

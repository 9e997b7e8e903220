// What the host's kernel knows of the traffic of sandboxes: packets that the firewall refused, connections that went out directly, and how much
// went each way. The firewall reports a limited number of both for each interface, and counts all. What was counted and not reported becomes a
// line with a number.
//
// Failure policy: if the kernel offers no such sockets, the log has only what passed through the proxy, and the node's log says so.

import { readFileSync } from "node:fs";
import { asError, errnoOf, type Logger } from "@skerry/base";
import { type FilterInstruction, NetlinkSocket, NLM_F_ACK, NLM_F_DUMP } from "@skerry/base/netlink";
import { COUNTER_SETS, type CounterSet, type NetworkNames, type NetworkSlot } from "@skerry/runtime";
import type { EgressBook } from "./egress-book.ts";
import {
  CONNECTION_GROUPS,
  connectionFilter,
  countersIn,
  elementsAsked,
  logConfig,
  loggedPacket,
  MESSAGE,
  type SandboxPrefixes,
  type TrackedConnection,
  trackedConnection,
} from "./netfilter-messages.ts";

const LOOK_MS = 250;
const COUNT_EVERY_MS = 2_000;
const LOGGED_BYTES = 96;
/** Of events that are not read yet. */
const RECEIVE_BYTES = 8 * 1024 * 1024;
/** Messages that are read at once, so that nothing else waits for long. */
const READS_AT_ONCE = 2_000;
/** Connections whose start is remembered. */
const MAX_OPEN = 100_000;

type Counts = Readonly<Record<CounterSet, { readonly bytes: number; readonly packets: number }>>;

interface Interface {
  readonly address: string;
  counts: Counts;
  /** What was reported, and what was counted, since the interface is known. */
  readonly reported: { opened: number; refused: number };
  readonly told: { opened: number; refused: number };
  readonly counted: { opened: number; refused: number };
}

export interface KernelEgressDeps {
  readonly names: NetworkNames;
  readonly book: EgressBook;
  readonly logger: Logger;
}

const ZERO: Counts = Object.fromEntries(COUNTER_SETS.map((name) => [name, { bytes: 0, packets: 0 }])) as Counts;

export class KernelEgress {
  readonly #deps: KernelEgressDeps;
  readonly #interfaces = new Map<string, Interface>();
  readonly #addresses = new Map<string, Interface>();
  readonly #names = new Map<number, string>();
  /** By id: when connections began. */
  readonly #begun = new Map<number, number>();
  #sockets: { readonly log: NetlinkSocket; readonly connections: NetlinkSocket; readonly requests: NetlinkSocket } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #countedMs = 0;
  #hasFailed = false;

  constructor(deps: KernelEgressDeps) {
    this.#deps = deps;
  }

  /** Preconditions: the firewall is in place. Its counters begin with 0. */
  start(prefixes: SandboxPrefixes): void {
    const opened: NetlinkSocket[] = [];
    const open = (options: { readonly groups?: number; readonly filter?: readonly FilterInstruction[] } = {}) => {
      const socket = new NetlinkSocket({ ...options, receiveBytes: RECEIVE_BYTES });
      opened.push(socket);
      return socket;
    };
    try {
      const log = open();
      log.send({ type: MESSAGE.logConfig, flags: NLM_F_ACK, body: logConfig(this.#deps.names.logGroup, LOGGED_BYTES) });
      log.receive();
      this.#sockets = { log, connections: open({ groups: CONNECTION_GROUPS, filter: connectionFilter(prefixes) }), requests: open() };
    } catch (error) {
      for (const socket of opened) socket.close();
      this.#deps.logger.warn({ err: asError(error) }, "egress logs lack what does not pass through the proxy");
      return;
    }
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** A container got this slot. */
  arrive({ hostInterface, addresses }: Pick<NetworkSlot, "addresses" | "hostInterface">): void {
    const known = this.#interfaces.get(hostInterface);
    if (known?.address === addresses.guest) return;
    const none = () => ({ opened: 0, refused: 0 });
    const arrived = { address: addresses.guest, counts: ZERO, reported: none(), told: none(), counted: none() };
    this.#interfaces.set(hostInterface, arrived);
    for (const address of [addresses.guest, addresses.ipv6?.guest]) if (address !== undefined) this.#addresses.set(address, arrived);
  }

  /** Writes down everything that happened until now at one interface, or at all. */
  settle(hostInterface?: string): void {
    if (!this.#sockets) return;
    this.#attempt(() => {
      // Counted first: what is reported in between is then at least what was counted.
      this.#count(hostInterface);
      this.#read();
      this.#tellOmitted();
    });
  }

  close(): void {
    clearInterval(this.#timer);
    this.settle();
    for (const socket of Object.values(this.#sockets ?? {})) socket.close();
    this.#sockets = undefined;
  }

  #look(): void {
    if (Date.now() - this.#countedMs >= COUNT_EVERY_MS) this.settle();
    else this.#attempt(() => this.#read());
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!this.#hasFailed) this.#deps.logger.warn({ err: asError(error) }, "reading the traffic of sandboxes from the kernel failed");
      this.#hasFailed = true;
    }
  }

  #read(): void {
    const { log, connections } = this.#sockets ?? {};
    for (const socket of [log, connections]) {
      for (let count = 0; socket && count < READS_AT_ONCE; count += 1) {
        const messages = socket.receive();
        if (messages === undefined) break;
        // What was lost was counted.
        if (messages === "lost") continue;
        for (const { type, body } of messages) this.#onMessage(type, body);
      }
    }
  }

  #onMessage(type: number, body: Buffer): void {
    if (type === MESSAGE.logPacket) this.#onPacket(body);
    if (type !== MESSAGE.connectionNew && type !== MESSAGE.connectionEnd) return;
    const connection = trackedConnection(body);
    const at = connection && this.#addresses.get(connection.from);
    if (!at || connection.isRedirected) return;
    if (type === MESSAGE.connectionEnd) this.#onEnd(at, connection);
    else this.#onNew(at, connection);
  }

  #onNew(at: Interface, { id }: TrackedConnection): void {
    at.reported.opened += 1;
    if (this.#begun.size < MAX_OPEN) this.#begun.set(id, Date.now());
  }

  #onPacket(body: Buffer): void {
    const packet = loggedPacket(body);
    const at = packet && this.#interfaceOf(packet.interfaceIndex);
    if (!at) return;
    const { protocol, address, port, reason } = packet;
    at.reported.refused += 1;
    const about = { protocol, name: "", address, port, sentBytes: 0, receivedBytes: 0 };
    this.#deps.book.add(at.address, { timeMs: Date.now(), ...about, verdict: "refused", rule: reason });
  }

  #onEnd(at: Interface, { id, protocol, address, port, sentBytes, receivedBytes }: TrackedConnection): void {
    const timeMs = this.#begun.get(id) ?? Date.now();
    this.#begun.delete(id);
    this.#deps.book.add(at.address, { timeMs, protocol, name: "", address, port, sentBytes, receivedBytes, verdict: "allowed", rule: "" });
  }

  #interfaceOf(index: number): Interface | undefined {
    if (!this.#names.has(index)) {
      for (const name of this.#interfaces.keys()) this.#names.set(indexOf(name), name);
    }
    return this.#interfaces.get(this.#names.get(index) ?? "");
  }

  #count(hostInterface?: string): void {
    if (hostInterface === undefined) this.#countedMs = Date.now();
    const now = new Map<string, Record<CounterSet, { bytes: number; packets: number }>>();
    for (const set of COUNTER_SETS) {
      for (const { name, bytes, packets } of this.#countersOf(set, hostInterface)) {
        const counts = now.get(name) ?? { ...ZERO };
        now.set(name, counts);
        counts[set] = { bytes, packets };
      }
    }
    for (const [name, counts] of now) {
      const known = this.#interfaces.get(name);
      if (known) this.#onCounts(known, counts);
    }
  }

  #countersOf(set: CounterSet, hostInterface?: string): ReturnType<typeof countersIn> {
    const body = elementsAsked(this.#deps.names.table, set, hostInterface);
    try {
      const flags = hostInterface === undefined ? NLM_F_DUMP : 0;
      const answer = this.#sockets?.requests.ask({ type: MESSAGE.setElementsAsked, flags, body }) ?? [];
      return answer.flatMap((message) => (message.type === MESSAGE.setElements ? countersIn(message.body) : []));
    } catch (error) {
      // The interface has sent nothing yet.
      if (hostInterface !== undefined && errnoOf(error) === "ENOENT") return [];
      throw error;
    }
  }

  #onCounts(at: Interface, counts: Counts): void {
    const before = at.counts;
    at.counts = counts;
    const added = (set: CounterSet, what: "bytes" | "packets") => Math.max(0, counts[set][what] - before[set][what]);
    const [opened, refused] = [added("opened", "packets"), added("refused", "packets")];
    at.counted.opened += opened;
    at.counted.refused += refused;
    const more = { sentBytes: added("sent", "bytes"), receivedBytes: added("received", "bytes"), connections: opened, refused };
    this.#deps.book.count(at.address, more);
  }

  #tellOmitted(): void {
    for (const at of this.#interfaces.values()) {
      for (const [what, verdict] of [
        ["refused", "refused"],
        ["opened", "allowed"],
      ] as const) {
        const missing = at.counted[what] - at.reported[what] - at.told[what];
        if (missing <= 0) continue;
        at.told[what] += missing;
        this.#deps.book.omit(at.address, verdict, missing);
      }
    }
  }
}

function indexOf(name: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${name}/ifindex`, "latin1"));
  } catch {
    return 0;
  }
}

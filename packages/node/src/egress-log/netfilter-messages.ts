// Reads the messages of netfilter: packets of the firewall's log, events of connection tracking, and counters in sets.

import { attribute, attributesOf, type FilterInstruction, listAttributes } from "@skerry/base/netlink";
import { shortIpv6 } from "@skerry/runtime";
import type { EgressRecord } from "../egress/egress-record.ts";

// From linux/netfilter/nfnetlink.h and its neighbours.
const GENERIC_BYTES = 4;
const NFPROTO_INET = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const INTERFACE_BYTES = 16;
const SUBSYSTEM = { conntrack: 1, log: 4, tables: 10 } as const;
const typeOf = (subsystem: number, message: number) => (subsystem << 8) | message;

export const MESSAGE = {
  connectionNew: typeOf(SUBSYSTEM.conntrack, 0),
  connectionEnd: typeOf(SUBSYSTEM.conntrack, 2),
  logPacket: typeOf(SUBSYSTEM.log, 0),
  logConfig: typeOf(SUBSYSTEM.log, 1),
  setElementsAsked: typeOf(SUBSYSTEM.tables, 13),
  setElements: typeOf(SUBSYSTEM.tables, 12),
} as const;
// From linux/filter.h.
const LOAD_BYTE = 0x30;
const LOAD_WORD = 0x20;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
const WHOLE_MESSAGE = 0xffff_ffff;
/** In a message about a connection: its family, and the source address of the side that opened it, which is always the first attribute. */
const FAMILY_OFFSET = 16;
const SOURCE_OFFSET = 32;
/** A filter has at most 4,096 instructions. */
const MAX_PREFIXES = 1_000;

/** Multicast groups of new connections and of those that ended, as bits. */
export const CONNECTION_GROUPS = 0b101;

type Protocol = EgressRecord["protocol"];
const PROTOCOLS: Readonly<Record<number, Protocol>> = { 1: "icmp", 6: "tcp", 17: "udp", 58: "icmp" };
const protocolOf = (number: number): Protocol => PROTOCOLS[number] ?? "other";

export interface LoggedPacket {
  readonly interfaceIndex: number;
  readonly reason: string;
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
}

export interface TrackedConnection {
  readonly id: number;
  /** Who opened it. */
  readonly from: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** It went to another place than the sandbox said, which is the egress proxy. */
  readonly isRedirected: boolean;
}

/** Asks for the packets of a group of the kernel's log, and for their first bytes alone. */
export function logConfig(group: number, copyBytes: number): Buffer {
  const mode = Buffer.alloc(6);
  mode.writeUInt32BE(copyBytes);
  mode[4] = 2;
  return Buffer.concat([generic(0, group), attribute(1, Buffer.from([1])), attribute(2, mode)]);
}

/** Asks for the elements of a set, or for that of one interface. */
export function elementsAsked(table: string, set: string, hostInterface?: string): Buffer {
  const all = [generic(NFPROTO_INET, 0), attribute(1, text(table)), attribute(2, text(set))];
  if (hostInterface === undefined) return Buffer.concat(all);
  const key = Buffer.alloc(INTERFACE_BYTES);
  key.write(hostInterface);
  return Buffer.concat([...all, attribute(3, attribute(1, attribute(1, attribute(1, key))))]);
}

/** Where the addresses of sandboxes are. */
export interface SandboxPrefixes {
  readonly ipv4: readonly string[];
  /** Of 64 bits. */
  readonly ipv6: string | undefined;
}

/**
 * Lets only connections through that a sandbox opened: with a source address in one of the prefixes. Sandboxes have the odd addresses of the pool.
 * So the connections of other programs on the host cost this process nothing.
 */
export function connectionFilter({ ipv4: prefixes, ipv6 }: SandboxPrefixes): FilterInstruction[] {
  const known = prefixes.slice(0, MAX_PREFIXES).map((prefix) => {
    const [address = "", length = "32"] = prefix.split("/");
    const number = Buffer.from(address.split(".").map(Number)).readUInt32BE();
    const mask = ((2 ** 32 - 2 ** (32 - Number(length))) | 1) >>> 0;
    return { mask, value: ((number | 1) & mask) >>> 0 };
  });
  const instruction = (code: number, k: number, jt = 0, jf = 0) => ({ code, jt, jf, k });
  const [high, low] = ipv6 === undefined ? [0, 0] : wordsOf(ipv6);
  const ofIpv6 =
    ipv6 === undefined
      ? [instruction(RETURN, 0)]
      : [
          instruction(JUMP_IF_EQUAL, AF_INET6, 0, 4),
          instruction(LOAD_WORD, SOURCE_OFFSET),
          instruction(JUMP_IF_EQUAL, high, 0, 2),
          instruction(LOAD_WORD, SOURCE_OFFSET + 4),
          instruction(JUMP_IF_EQUAL, low, 1, 0),
          instruction(RETURN, 0),
          instruction(RETURN, WHOLE_MESSAGE),
        ];
  return [
    instruction(LOAD_BYTE, FAMILY_OFFSET),
    instruction(JUMP_IF_EQUAL, AF_INET, ofIpv6.length),
    ...ofIpv6,
    ...known.flatMap(({ mask, value }) => [
      instruction(LOAD_WORD, SOURCE_OFFSET),
      instruction(AND, mask),
      instruction(JUMP_IF_EQUAL, value, 0, 1),
      instruction(RETURN, WHOLE_MESSAGE),
    ]),
    instruction(RETURN, 0),
  ];
}

/** Undefined for what is no packet of IP. */
export function loggedPacket(body: Buffer): LoggedPacket | undefined {
  const attributes = attributesOf(body.subarray(GENERIC_BYTES));
  const packet = destinationOf(attributes.get(9) ?? Buffer.alloc(0));
  if (!packet) return undefined;
  const reason = untext(attributes.get(10));
  return { interfaceIndex: attributes.get(4)?.readUInt32BE() ?? 0, reason, ...packet };
}

/** The first 64 bits of a prefix. */
function wordsOf(prefix: string): [number, number] {
  const groups = (prefix.split("::")[0] ?? "").split(":").map((group) => Number.parseInt(group, 16));
  const [a = 0, b = 0, c = 0, d = 0] = groups;
  return [a * 65_536 + b, c * 65_536 + d];
}

/** Undefined for what is no connection of IP. */
export function trackedConnection(body: Buffer): TrackedConnection | undefined {
  const attributes = attributesOf(body.subarray(GENERIC_BYTES));
  const sent = tupleOf(attributes.get(1));
  const answered = tupleOf(attributes.get(2));
  if (!sent || !answered) return undefined;
  return {
    id: attributes.get(12)?.readUInt32BE() ?? 0,
    from: sent.source,
    address: sent.destination,
    port: sent.port,
    protocol: protocolOf(sent.protocol),
    sentBytes: bytesOf(attributes.get(9)),
    receivedBytes: bytesOf(attributes.get(10)),
    isRedirected: answered.source !== sent.destination,
  };
}

/** Names of interfaces and their counters: bytes and packets. */
export function countersIn(body: Buffer): { readonly name: string; readonly bytes: number; readonly packets: number }[] {
  const elements = attributesOf(body.subarray(GENERIC_BYTES)).get(3);
  return listAttributes(elements ?? Buffer.alloc(0)).flatMap(({ value }) => {
    const element = attributesOf(value);
    const key = attributesOf(element.get(1) ?? Buffer.alloc(0)).get(1);
    const counter = counterOf(element);
    return key && counter ? [{ name: untext(key), ...counter }] : [];
  });
}

function counterOf(element: ReadonlyMap<number, Buffer>): { bytes: number; packets: number } | undefined {
  const expression = attributesOf(element.get(7) ?? Buffer.alloc(0));
  if (untext(expression.get(1)) !== "counter") return undefined;
  const data = attributesOf(expression.get(2) ?? Buffer.alloc(0));
  return { bytes: Number(data.get(1)?.readBigUInt64BE() ?? 0n), packets: Number(data.get(2)?.readBigUInt64BE() ?? 0n) };
}

function destinationOf(packet: Buffer): Omit<LoggedPacket, "interfaceIndex" | "reason"> | undefined {
  const version = (packet[0] ?? 0) >> 4;
  if (version === 4 && packet.length >= 20) {
    const headBytes = ((packet[0] ?? 0) & 15) * 4;
    const address = ipv4(packet.subarray(16, 20));
    return { ...portOf(packet[9] ?? 0, packet.subarray(headBytes)), address };
  }
  if (version === 6 && packet.length >= 40) {
    return { ...portOf(packet[6] ?? 0, packet.subarray(40)), address: ipv6Text(packet.subarray(24, 40)) };
  }
  return undefined;
}

function ipv6Text(bytes: Buffer): string {
  return shortIpv6(Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(":"));
}

function portOf(number: number, content: Buffer): { protocol: Protocol; port: number } {
  const protocol = protocolOf(number);
  const hasPort = (protocol === "tcp" || protocol === "udp") && content.length >= 4;
  return { protocol, port: hasPort ? content.readUInt16BE(2) : 0 };
}

function tupleOf(bytes: Buffer | undefined) {
  const tuple = attributesOf(bytes ?? Buffer.alloc(0));
  const ip = attributesOf(tuple.get(1) ?? Buffer.alloc(0));
  const transport = attributesOf(tuple.get(2) ?? Buffer.alloc(0));
  const [source, destination] = [addressIn(ip, 1), addressIn(ip, 2)];
  if (source === undefined || destination === undefined) return undefined;
  return { source, destination, protocol: transport.get(1)?.[0] ?? 0, port: transport.get(3)?.readUInt16BE() ?? 0 };
}

/** The source (1) or the destination (2) of a connection. Those of IPv6 are the two attributes after them. */
function addressIn(ip: ReadonlyMap<number, Buffer>, which: 1 | 2): string | undefined {
  const [ofIpv4, ofIpv6] = [ip.get(which), ip.get(which + 2)];
  if (ofIpv4?.length === 4) return ipv4(ofIpv4);
  return ofIpv6?.length === 16 ? ipv6Text(ofIpv6) : undefined;
}

function bytesOf(counters: Buffer | undefined): number {
  return Number(
    attributesOf(counters ?? Buffer.alloc(0))
      .get(2)
      ?.readBigUInt64BE() ?? 0n,
  );
}

function ipv4(bytes: Buffer | undefined): string {
  return [...(bytes ?? [])].join(".");
}

function generic(family: number, resource: number): Buffer {
  const bytes = Buffer.alloc(GENERIC_BYTES);
  bytes[0] = family;
  bytes.writeUInt16BE(resource, 2);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

function untext(bytes: Buffer | undefined): string {
  return (bytes ?? Buffer.alloc(0)).toString("latin1").replace(/\0.*$/s, "");
}

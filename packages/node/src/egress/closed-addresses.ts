// The addresses that no sandbox may reach through the egress proxy, whatever its policy. The proxy connects from the host, so the firewall's
// rules for sandboxes do not hold for it.

import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { CLOSED_RANGES } from "@skerry/runtime";
import { ALL_IPV4, type Ipv4Range, isInRanges, parseIpv4Range, withoutRanges } from "@skerry/wire";

/** How long the host's own addresses are taken as known. A new one is also noticed when a connection to it is open: see `isOwnConnection`. */
const KNOWN_MS = 5_000;

const CLOSED = withoutRanges(
  CLOSED_RANGES.map(({ range }) => parseIpv4Range(range) ?? ALL_IPV4),
  [],
);

let own: { readonly addresses: ReadonlySet<string>; readonly until: number } | undefined;

/** Whether an address is of a private or reserved range, or of the host itself. */
export function isClosedToAll(address: string): boolean {
  return isInRanges(CLOSED, address) || ownAddresses().has(address);
}

/** Whether the proxy of a caller must not have an address. `opened`: parts of private networks, by the operator. */
export function isClosedToProxies(opened: readonly Ipv4Range[], address: string): boolean {
  return ownAddresses().has(address) || (isInRanges(CLOSED, address) && !isInRanges(opened, address));
}

/** Whether a connection of the host ends at the host. */
export function isOwnConnection({ localAddress, remoteAddress }: Pick<Socket, "localAddress" | "remoteAddress">): boolean {
  return localAddress === remoteAddress;
}

function ownAddresses(): ReadonlySet<string> {
  const now = performance.now();
  if (own && own.until > now) return own.addresses;
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  own = { addresses: new Set(all.map(({ address }) => address)), until: now + KNOWN_MS };
  return own.addresses;
}

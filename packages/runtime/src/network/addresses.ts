// Each slot is a point-to-point link with two addresses (RFC 3021, /31): the even one for the host, the odd one for the sandbox. With IPv6 it has
// two more (RFC 6164, /127), which end in those of IPv4.

import { PlatformError } from "@skerry/base";

export interface SlotAddresses {
  readonly host: string;
  readonly guest: string;
  /** Absent: the slot has no IPv6. */
  readonly ipv6?: { readonly host: string; readonly guest: string };
}

export interface AddressPlan {
  /** A prefix such as "10.213.0.0/16". */
  readonly pool: string;
  /** A prefix such as "fd53:6b79:1a2b::/64", which no other network should have (RFC 4193). Undefined: slots have no IPv6. */
  readonly ipv6: string | undefined;
  /** Number of slots in the pool. */
  readonly slots: number;
  of(slot: number): SlotAddresses;
}

export function parsePrefix(text: string): { base: number; length: number } | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (!match) return undefined;
  const octets = match.slice(1, 5).map(Number);
  const length = Number(match[5]);
  if (octets.some((octet) => octet > 255) || length > 32) return undefined;
  const address = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const size = 2 ** (32 - length);
  return { base: Math.floor(address / size) * size, length };
}

/** The prefix of an instance's sandboxes. */
export function ipv6Prefix(instance: string): string {
  return `fd53:6b79:${instance}::/64`;
}

/** `ipv6`: the prefix, or undefined for slots without IPv6. */
export function addressesOf(pool: string, ipv6?: string): AddressPlan {
  const prefix = parsePrefix(pool);
  if (!prefix || prefix.length < 12 || prefix.length > 30) {
    throw new PlatformError("config_invalid", `the network pool must be an IPv4 prefix of 12 to 30 bits like 10.213.0.0/16, not "${pool}"`);
  }
  const slots = 2 ** (31 - prefix.length);
  return {
    pool,
    ipv6,
    slots,
    of(slot) {
      if (!Number.isInteger(slot) || slot < 0 || slot >= slots)
        throw new PlatformError("network_pool_empty", `slot ${slot} is not in ${pool}`);
      const [host, guest] = [prefix.base + slot * 2, prefix.base + slot * 2 + 1];
      const own = { host: toText(host), guest: toText(guest) };
      return ipv6 === undefined ? own : { ...own, ipv6: { host: toIpv6(ipv6, host), guest: toIpv6(ipv6, guest) } };
    },
  };
}

export interface AddressWish {
  /** The configured prefix of IPv4. */
  readonly wanted: string | undefined;
  readonly instance: string;
  /** Prefixes that the host routes. */
  readonly routed: readonly string[];
  /** Whether slots have IPv6. */
  readonly ipv6?: boolean;
}

/**
 * The address pool: the wanted one, or a /16 of 10.0.0.0/8 that overlaps no route of the host. Each instance starts the search at
 * another prefix.
 */
export function planAddresses({ wanted, instance, routed, ipv6 = false }: AddressWish): AddressPlan {
  const planOf = (pool: string) => addressesOf(pool, ipv6 ? ipv6Prefix(instance) : undefined);
  if (wanted !== undefined) return planOf(wanted);
  const taken = routed.map(parsePrefix).filter((prefix) => prefix !== undefined);
  const start = Number.parseInt(instance, 16) % 256;
  for (let step = 0; step < 256; step += 1) {
    const pool = `10.${(start + step) % 256}.0.0/16`;
    const prefix = parsePrefix(pool);
    if (prefix && !taken.some((other) => overlaps(prefix, other))) return planOf(pool);
  }
  throw new PlatformError(
    "network_pool_empty",
    "every /16 of 10.0.0.0/8 is routed on this machine: set SKERRY_NETWORK_POOL to a free prefix",
  );
}

function overlaps(a: { base: number; length: number }, b: { base: number; length: number }): boolean {
  // A default route does not occupy addresses.
  if (a.length === 0 || b.length === 0) return false;
  const size = 2 ** (32 - Math.min(a.length, b.length));
  return Math.floor(a.base / size) === Math.floor(b.base / size);
}

function toIpv6(prefix: string, address: number): string {
  const groups = [Math.floor(address / 65_536), address % 65_536].map((group) => group.toString(16));
  return shortIpv6(prefix.replace(/::\/64$/, `::${groups.join(":")}`));
}

/** The form of an address that the kernel's tools show, too (RFC 5952). */
export function shortIpv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

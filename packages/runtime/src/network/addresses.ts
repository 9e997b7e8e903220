// Each slot is a point-to-point link with two addresses (RFC 3021, /31): the even one for the host, the odd one for the sandbox.

import { PlatformError } from "@skerry/base";

export interface SlotAddresses {
  readonly host: string;
  readonly guest: string;
}

export interface AddressPlan {
  /** A prefix such as "10.213.0.0/16". */
  readonly pool: string;
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

export function addressesOf(pool: string): AddressPlan {
  const prefix = parsePrefix(pool);
  if (!prefix || prefix.length < 12 || prefix.length > 30) {
    throw new PlatformError("config_invalid", `the network pool must be an IPv4 prefix of 12 to 30 bits like 10.213.0.0/16, not "${pool}"`);
  }
  const slots = 2 ** (31 - prefix.length);
  return {
    pool,
    slots,
    of(slot) {
      if (!Number.isInteger(slot) || slot < 0 || slot >= slots)
        throw new PlatformError("network_pool_empty", `slot ${slot} is not in ${pool}`);
      return { host: toText(prefix.base + slot * 2), guest: toText(prefix.base + slot * 2 + 1) };
    },
  };
}

/**
 * The address pool: the wanted one, or a /16 of 10.0.0.0/8 that overlaps no route of the host. Each instance starts the search at
 * another prefix.
 */
export function planAddresses(options: { wanted: string | undefined; instance: string; routed: readonly string[] }): AddressPlan {
  if (options.wanted !== undefined) return addressesOf(options.wanted);
  const taken = options.routed.map(parsePrefix).filter((prefix) => prefix !== undefined);
  const start = Number.parseInt(options.instance, 16) % 256;
  for (let step = 0; step < 256; step += 1) {
    const pool = `10.${(start + step) % 256}.0.0/16`;
    const prefix = parsePrefix(pool);
    if (prefix && !taken.some((other) => overlaps(prefix, other))) return addressesOf(pool);
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

function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

// The network policy of sandboxes: what each one may reach. Only this module turns the options of a sandbox into rules of the host's firewall,
// and only this module removes them. The rules refer to the host interface of a network slot, so they hold until the slot is released.

import { PlatformError } from "@skerry/base";
import {
  applyFirewall,
  forgetConnections,
  type NetworkNames,
  type NetworkSlot,
  type ProxyAddress,
  type Restriction,
  restrictTraffic,
  setProxies,
  unrestrictTraffic,
} from "@skerry/runtime";
import { ALL_IPV4, type Ipv4Range, ipv4RangeText, parseIpv4Range, withoutRanges } from "@skerry/wire";
import type { SandboxOptions } from "@skerry/wire/node";

export interface AdoptedNetwork {
  /** Address prefix of the slots. */
  readonly pool: string;
  readonly resolvers: readonly string[];
  readonly proxies: readonly ProxyAddress[];
  /** The sandboxes that run already. */
  readonly sandboxes: readonly { readonly slot: NetworkSlot; readonly options: SandboxOptions }[];
}

export class NetworkPolicy {
  readonly #names: NetworkNames;
  /** Host interfaces for which the firewall has rules. */
  readonly #restricted = new Set<string>();

  constructor(names: NetworkNames) {
    this.#names = names;
  }

  /** Replaces the rules of a former daemon in one step. The policies of the sandboxes that run already hold without a gap. */
  async adopt({ pool, resolvers, proxies, sandboxes }: AdoptedNetwork): Promise<void> {
    this.#restricted.clear();
    const restricted = sandboxes.map(({ slot, options }) => restrictionOf(slot, options)).filter((one) => one !== undefined);
    for (const { hostInterface } of restricted) this.#restricted.add(hostInterface);
    const adopted = sandboxes.map(({ slot }) => slot.addresses.guest);
    await applyFirewall({ names: this.#names, pool, resolvers, proxies, restricted, adopted });
  }

  /**
   * Makes the rules for a slot those of its sandbox, which may be running. Connections that they do not allow are cut. After a failure the
   * former rules hold; a slot that was to get the first rules of its sandbox must then be released.
   */
  async apply(slot: NetworkSlot, options: SandboxOptions): Promise<void> {
    const restriction = restrictionOf(slot, options);
    if (!restriction) return await this.#lift(slot);
    // Noted first, so that a release also removes a rule whose creation was reported as failed.
    this.#restricted.add(slot.hostInterface);
    await restrictTraffic(this.#names, restriction);
  }

  /** Replaces the proxies that every sandbox without restrictions may reach. */
  async setProxies(proxies: readonly ProxyAddress[]): Promise<void> {
    await setProxies(this.#names, proxies);
  }

  /** Removes the rules of a slot whose sandbox has ended, and its connections. Throws when the slot must not be used again. */
  async release(slot: NetworkSlot): Promise<void> {
    await forgetConnections(slot.addresses.guest);
    await this.#lift(slot);
  }

  async #lift({ hostInterface }: NetworkSlot): Promise<void> {
    if (!this.#restricted.has(hostInterface)) return;
    await unrestrictTraffic(this.#names, hostInterface);
    this.#restricted.delete(hostInterface);
  }
}

/** Undefined when the sandbox may reach everything that any sandbox can. IPv6 needs no rule, because no sandbox has it. */
function restrictionOf({ hostInterface }: NetworkSlot, options: SandboxOptions): Restriction | undefined {
  const { allowInternetAccess = true, allowOut = [], denyOut = [] } = options;
  const allowed = rangesOf(allowOut);
  const closed = withoutRanges(
    [...rangesOf(denyOut.filter((entry) => !entry.includes(":"))), ...(allowInternetAccess ? [] : [ALL_IPV4])],
    allowed,
  );
  if (closed.length === 0) return undefined;
  const isEverything = closed.length === 1 && closed[0]?.first === ALL_IPV4.first && closed[0].last === ALL_IPV4.last;
  return {
    hostInterface,
    closed: isEverything ? "everything" : closed.map(ipv4RangeText),
    proxiesAt: withoutRanges(allowed, []).map(ipv4RangeText),
  };
}

/** Throws PlatformError("invalid_argument") for what is no address: nothing may be left out of the rules. */
function rangesOf(entries: readonly string[]): Ipv4Range[] {
  return entries.map((entry) => {
    const range = parseIpv4Range(entry);
    if (range) return range;
    throw new PlatformError(
      "invalid_argument",
      `the network policy has an address that this version does not know: ${entry.slice(0, 100)}`,
    );
  });
}

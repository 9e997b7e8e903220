// The network policy of sandboxes: what each one may reach. Only this module turns the options of a sandbox into rules of the host's firewall,
// and only this module removes them. The rules refer to the host interface of a network slot, so they hold until the slot is released.

import {
  applyFirewall,
  blockInternet,
  forgetConnections,
  type NetworkNames,
  type NetworkSlot,
  type ProxyAddress,
  setProxies,
  unblockInternet,
} from "@skerry/runtime";
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
    for (const { slot, options } of sandboxes) if (!allowsInternet(options)) this.#restricted.add(slot.hostInterface);
    const adopted = sandboxes.map(({ slot }) => slot.addresses.guest);
    await applyFirewall({ names: this.#names, pool, resolvers, proxies, blocked: [...this.#restricted], adopted });
  }

  /**
   * Makes the rules for a slot those of its sandbox. Preconditions: nothing of the sandbox runs in the slot yet, or the container is not
   * assigned to a sandbox yet. A slot whose policy could not be applied must be released.
   */
  async apply(slot: NetworkSlot, options: SandboxOptions): Promise<void> {
    if (allowsInternet(options)) return await this.#lift(slot);
    // Noted first, so that a release also removes a rule whose creation was reported as failed.
    this.#restricted.add(slot.hostInterface);
    await blockInternet(this.#names, slot.hostInterface);
  }

  /** Replaces the proxies that every sandbox with internet access may reach. */
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
    await unblockInternet(this.#names, hostInterface);
    this.#restricted.delete(hostInterface);
  }
}

function allowsInternet({ allowInternetAccess = true }: SandboxOptions): boolean {
  return allowInternetAccess;
}

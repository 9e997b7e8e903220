// Which addresses a webhook may lead to: public ones, and the networks that the operator opened. A name is resolved once for each
// connection, and the connection goes to the address that was checked, so a name that changes its address in between gains nothing.

import type { LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** Public IPv6 addresses. Everything else is reserved, or leads to IPv4 addresses by another name. */
const GLOBAL_IPV6 = ipaddr.parseCIDR("2000::/3");

export class AddressRefused extends Error {
  constructor(hostname: string) {
    super(`${hostname} leads to no address that webhooks may use`);
  }
}

export class AddressGuard {
  readonly #opened: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];
  readonly #resolve: Resolve;
  /** `opened`: addresses and networks that webhooks may use although they are not public. */
  constructor(opened: readonly string[], resolve: Resolve) {
    this.#opened = opened.map((text) => {
      if (text.includes("/")) return ipaddr.parseCIDR(text);
      const address = ipaddr.parse(text);
      return [address, address.kind() === "ipv4" ? 32 : 128];
    });
    this.#resolve = resolve;
  }

  /** Plain HTTP goes only where the operator opened a network: everywhere else others could read it. */
  allows(address: string, protocol: "http:" | "https:"): boolean {
    if (!ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    if (this.#opened.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits))) return true;
    return protocol === "https:" && isPublic(parsed) && !isOfThisHost(parsed);
  }

  /** For connections to names. Addresses in URLs are not looked up: ask `allows`. */
  lookup(protocol: "http:" | "https:"): LookupFunction {
    return (hostname, options, done) => {
      const refuse = (error: Error) => (options.all ? done(error, []) : done(error, "", 4));
      this.#resolve(hostname).then(
        (found) => {
          const allowed = found
            .filter((address) => this.allows(address, protocol))
            .map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
          const [first] = allowed;
          if (!first) return refuse(new AddressRefused(hostname));
          if (options.all) return done(null, allowed);
          done(null, first.address, first.family);
        },
        (error: Error) => refuse(error),
      );
    };
  }
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== "unicast") return false;
  return address.kind() === "ipv4" || address.match(GLOBAL_IPV6);
}

/** The host itself would answer with what it keeps from the network. */
function isOfThisHost(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some((one) => ipaddr.process(one.address.split("%")[0] ?? "").toNormalizedString() === address.toNormalizedString());
}

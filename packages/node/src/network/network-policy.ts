// The network policy of sandboxes: what each one may reach. Only this module turns the options of a sandbox into rules of the host's firewall
// and of the egress proxy, and only this module removes them. The rules refer to the host interface and the address of a network slot, so they
// hold until the slot is released.

import { PlatformError, Secret } from "@skerry/base";
import {
  ALL_IPV6,
  applyFirewall,
  forgetConnections,
  freeBandwidth,
  limitBandwidth,
  limitedInterfaces,
  type NetworkNames,
  type NetworkSlot,
  type ProxyAddress,
  type Restriction,
  restrictTraffic,
  setProxies,
  unrestrictTraffic,
} from "@skerry/runtime";
import { AGENT_PORT, ALL_IPV4, type Ipv4Range, ipv4RangeText, parseIpv4Range, withoutRanges } from "@skerry/wire";
import { headerRulesOf, networkLimitsOf, outgoingProxyOf, type SandboxOptions, type SandboxSecrets } from "@skerry/wire/node";
import ipaddr from "ipaddr.js";
import type { EgressProxy } from "../egress/egress-proxy.ts";
import { hostName, NameRules } from "../egress/names.ts";
import type { EgressPolicy } from "../egress/policy.ts";
import { STAND_INS } from "../egress/stand-ins.ts";
import type { EgressLog } from "../egress-log/egress-log.ts";
import type { Interceptions } from "../interception/interceptions.ts";

export interface AdoptedNetwork {
  /** Address prefixes of the slots. Without that of IPv6, nothing of it passes. */
  readonly pool: string;
  readonly ipv6: string | undefined;
  readonly resolvers: readonly string[];
  /** Those that the operator opened to sandboxes. */
  readonly privateNetworks: readonly string[];
  readonly proxies: readonly ProxyAddress[];
  /** Most connections of one sandbox to the outside at once. */
  readonly maxConnections: number;
  /** The sandboxes that run already. */
  readonly sandboxes: readonly { readonly slot: NetworkSlot; readonly options: SandboxOptions }[];
}

export interface NetworkPolicyDeps {
  readonly proxy: EgressProxy;
  readonly interceptions: Interceptions;
  readonly egressLog: EgressLog;
}

/** Ports of the connections that name a host, and that the egress proxy can therefore judge. */
const NAMED_PORTS = [80, 443];
const HTTPS_PORTS = [443];

/** Rules of one sandbox, for the firewall and for the proxy. */
interface Rules {
  readonly restriction: Restriction;
  readonly egress: EgressPolicy;
}

/** What a sandbox may do that has no rules: it is never redirected to the proxy, and what passed through it before may go on. */
const OPEN: EgressPolicy = { names: new NameRules([]), closed: [], isAllDenied: false, hasHeaderRules: false, proxy: undefined };

export class NetworkPolicy {
  readonly #names: NetworkNames;
  readonly #proxy: EgressProxy;
  readonly #interceptions: Interceptions;
  readonly #egressLog: EgressLog;
  /** Host interfaces for which the firewall has rules. */
  readonly #restricted = new Set<string>();
  /** The bandwidths of host interfaces that have a limit, or may have one after an error or a crash. */
  readonly #bandwidths = new Map<string, number | "unknown">();

  constructor(names: NetworkNames, { proxy, interceptions, egressLog }: NetworkPolicyDeps) {
    this.#names = names;
    this.#proxy = proxy;
    this.#interceptions = interceptions;
    this.#egressLog = egressLog;
  }

  /** Replaces the rules of a former daemon in one step. The policies of the sandboxes that run already hold without a gap. */
  async adopt({ pool, ipv6, resolvers, privateNetworks, proxies, maxConnections, sandboxes }: AdoptedNetwork): Promise<void> {
    this.#restricted.clear();
    this.#bandwidths.clear();
    const adopted = sandboxes.map(({ slot }) => slot.addresses.guest);
    const egress = await this.#proxy.listen(withoutRanges(rangesOf(privateNetworks), rangesOf([pool, ...adopted])));
    const restricted: Restriction[] = [];
    for (const { slot, options } of sandboxes) {
      const rules = rulesOf(slot, options);
      if (!rules) continue;
      this.#restricted.add(slot.hostInterface);
      this.#proxy.set(slot.addresses.guest, rules.egress);
      this.#interceptions.setRules(slot.addresses.guest, headerRulesOf(options));
      restricted.push(rules.restriction);
    }
    await applyFirewall({
      names: this.#names,
      pool,
      ipv6,
      resolvers,
      privateNetworks,
      proxies,
      restricted,
      adopted,
      maxConnections,
      egress,
    });
    this.#egressLog.start({ ipv4: [pool, ...adopted], ipv6 });
    // Those of a former daemon, which may have ended within a change.
    const limited = await limitedInterfaces(this.#names);
    for (const { slot, options } of sandboxes) {
      if (limited.has(slot.hostInterface)) this.#bandwidths.set(slot.hostInterface, "unknown");
      await this.#setBandwidth(slot, networkLimitsOf(options).bandwidthMbps);
    }
  }

  /**
   * Makes the rules for a slot those of its sandbox, which may be running. Connections that they do not allow are cut. After a failure the
   * former rules hold; a slot that was to get the first rules of its sandbox must then be released.
   */
  async apply(slot: NetworkSlot, options: SandboxOptions): Promise<void> {
    const bandwidthBefore = this.#bandwidths.get(slot.hostInterface);
    await this.#setBandwidth(slot, networkLimitsOf(options).bandwidthMbps);
    const rules = rulesOf(slot, options);
    const { guest } = slot.addresses;
    const before = this.#proxy.policyAt(guest);
    // The proxy first: what is redirected to it must find its rules. It decides only what is redirected.
    if (rules || before) this.#proxy.set(guest, rules?.egress ?? OPEN);
    const headersBefore = this.#interceptions.rulesAt(guest);
    this.#interceptions.setRules(guest, headerRulesOf(options));
    try {
      if (!rules) return await this.#lift(slot);
      // Noted first, so that a release also removes a rule whose creation was reported as failed.
      this.#restricted.add(slot.hostInterface);
      await restrictTraffic(this.#names, rules.restriction);
    } catch (error) {
      if (before) this.#proxy.set(guest, before);
      this.#interceptions.setRules(guest, headersBefore);
      await this.#setBandwidth(slot, bandwidthBefore === "unknown" ? undefined : bandwidthBefore).catch(() => {});
      throw error;
    }
  }

  /**
   * Replaces the secrets for the rules and the proxy of a sandbox, which nothing else keeps. Returns whether it must trust another authority
   * than before.
   */
  provide({ addresses }: NetworkSlot, secrets: SandboxSecrets | undefined): boolean {
    const proxy = secrets?.proxyPassword;
    this.#proxy.provide(addresses.guest, proxy && { credentialId: proxy.credentialId, password: new Secret(proxy.password) });
    return this.#interceptions.provide(addresses.guest, secrets);
  }

  /** PEM of the certificate authority of a sandbox; "" for none. */
  authorityOf({ addresses }: NetworkSlot): Promise<string> {
    return this.#interceptions.certificateAt(addresses.guest);
  }

  /** Undefined when a sandbox needs no secrets; "" when it must get them. */
  secretsVersionOf({ addresses: { guest } }: NetworkSlot): string | undefined {
    const isNeeded = this.#interceptions.rulesAt(guest).length > 0 || this.#proxy.policyAt(guest)?.proxy !== undefined;
    return isNeeded ? this.#interceptions.versionAt(guest) : undefined;
  }

  /** Replaces the proxies that every sandbox without restrictions may reach. */
  async setProxies(proxies: readonly ProxyAddress[]): Promise<void> {
    await setProxies(this.#names, proxies);
  }

  /** Removes the rules of a slot whose sandbox has ended, and its connections. Throws when the slot must not be used again. */
  async release(slot: NetworkSlot): Promise<void> {
    this.#proxy.remove(slot.addresses.guest);
    this.#interceptions.remove(slot.addresses.guest);
    await forgetConnections(slot.addresses);
    this.#egressLog.leave(slot);
    await this.#lift(slot);
    await this.#setBandwidth(slot, undefined);
  }

  async #lift({ hostInterface }: NetworkSlot): Promise<void> {
    if (!this.#restricted.has(hostInterface)) return;
    await unrestrictTraffic(this.#names, hostInterface);
    this.#restricted.delete(hostInterface);
  }

  async #setBandwidth(slot: NetworkSlot, mbps: number | undefined): Promise<void> {
    if (mbps === this.#bandwidths.get(slot.hostInterface)) return;
    if (mbps === undefined) {
      await freeBandwidth(slot, this.#names);
      this.#bandwidths.delete(slot.hostInterface);
      return;
    }
    // Noted first, so that a release also removes what was made before an error.
    this.#bandwidths.set(slot.hostInterface, "unknown");
    await limitBandwidth(slot, { names: this.#names, mbps, agentPort: AGENT_PORT });
    this.#bandwidths.set(slot.hostInterface, mbps);
  }
}

/** Undefined when the sandbox may reach everything that any sandbox can. */
function rulesOf({ hostInterface }: NetworkSlot, options: SandboxOptions): Rules | undefined {
  const { allowInternetAccess = true, allowOut = [], denyOut = [] } = options;
  const names = new NameRules(allowOut.filter((entry) => isName(entry)));
  // Undefined: the node's own.
  const nameServers = options.dnsServers && (options.dnsServers.addresses ?? []);
  const openServers = names.isEmpty ? [] : (nameServers ?? []);
  const allowed = rangesOf([...allowOut.filter((entry) => !isName(entry) && !isIpv6(entry)), ...openServers]);
  const denied = withoutRanges([...rangesOf(denyOut.filter((entry) => !isIpv6(entry))), ...(allowInternetAccess ? [] : [ALL_IPV4])], []);
  const closed = withoutRanges(denied, allowed);
  const isAllDenied = isEverything(denied);
  const proxy = outgoingProxyOf(options);
  const hasHeaderRules = headerRulesOf(options).length > 0;
  const { connections: maxConnections } = networkLimitsOf(options);
  const limits = maxConnections === undefined ? {} : { maxConnections };
  const ipv6 = {
    open: widestOf(allowOut.filter(isIpv6)),
    closed: widestOf([...denyOut.filter(isIpv6), ...(isAllDenied ? [ALL_IPV6] : [])]),
    // The egress proxy reads connections of IPv4. A program that is refused takes that.
    closedPorts: hasHeaderRules ? HTTPS_PORTS : [],
  };
  if (closed.length === 0 && ipv6.closed.length === 0 && !hasHeaderRules && !proxy) {
    return maxConnections === undefined
      ? undefined
      : { restriction: { hostInterface, closed: [], proxiesAt: [], ...limits }, egress: OPEN };
  }
  const egress = { names, closed, isAllDenied, hasHeaderRules, proxy };
  // The egress proxy decides about every TCP connection and every question for names. Nothing else leaves the sandbox.
  if (proxy) {
    // What stands for a name is judged by the name.
    const judged = isAllDenied ? closed : withoutRanges(closed, STAND_INS);
    // Names are looked up by the proxy, whichever name server is asked.
    const redirected = { tcp: "all", dns: nameServers?.length !== 0, except: [] } as const;
    return {
      restriction: { hostInterface, closed: "everything", proxiesAt: [], redirected, ...limits },
      egress: { ...egress, closed: judged },
    };
  }
  const open = withoutRanges(allowed, []).map(ipv4RangeText);
  return {
    restriction: {
      hostInterface,
      closed: isEverything(closed) ? "everything" : closed.map(ipv4RangeText),
      ipv6,
      proxiesAt: open,
      ...limits,
      ...redirectionOf({ hasNames: !names.isEmpty, hasHeaders: hasHeaderRules, dns: nameServers === undefined, open }),
    },
    egress,
  };
}

function isEverything([first, ...more]: readonly Ipv4Range[]): boolean {
  return more.length === 0 && first?.first === ALL_IPV4.first && first.last === ALL_IPV4.last;
}

/** Requests that get headers pass through the proxy, also those to addresses that are open. */
function redirectionOf(rules: {
  readonly hasNames: boolean;
  readonly hasHeaders: boolean;
  /** Whether the node's name server answers for the names. */
  readonly dns: boolean;
  readonly open: readonly string[];
}) {
  const { hasNames, hasHeaders, dns, open } = rules;
  if (!hasNames && !hasHeaders) return {};
  return { redirected: { tcp: hasNames ? NAMED_PORTS : [], dns: hasNames && dns, except: open, always: hasHeaders ? HTTPS_PORTS : [] } };
}

function isIpv6(entry: string): boolean {
  return entry.includes(":");
}

/** The prefixes of IPv6 that are in no other one of the list. Throws for what is no address, as `rangesOf`. */
function widestOf(entries: readonly string[]): string[] {
  const widest: { readonly prefix: [ipaddr.IPv6, number]; readonly entry: string }[] = [];
  const all = entries.map((entry) => ({ entry, prefix: ipv6Prefix(entry) }));
  for (const one of all.toSorted((a, b) => a.prefix[1] - b.prefix[1])) {
    if (!widest.some(({ prefix }) => one.prefix[0].match(prefix))) widest.push(one);
  }
  return widest.map(({ prefix: [address, length] }) => `${address.toString()}/${length}`);
}

function ipv6Prefix(entry: string): [ipaddr.IPv6, number] {
  const [address = "", length = "128"] = entry.split("/");
  if (!ipaddr.IPv6.isValid(address) || !(Number(length) <= 128)) throw unknownAddress(entry);
  return [ipaddr.IPv6.parse(address), Number(length)];
}

/** Entries are checked by the API. What is neither a name nor an address is refused below. */
function isName(entry: string): boolean {
  return entry === "*" || hostName(entry.replace(/^\*\./, "")) !== undefined;
}

/** Throws PlatformError("invalid_argument") for what is no address: nothing may be left out of the rules. */
function rangesOf(entries: readonly string[]): Ipv4Range[] {
  return entries.map((entry) => {
    const range = parseIpv4Range(entry);
    if (range) return range;
    throw unknownAddress(entry);
  });
}

function unknownAddress(entry: string): PlatformError {
  return new PlatformError("invalid_argument", `the network policy has an address that this version does not know: ${entry.slice(0, 100)}`);
}

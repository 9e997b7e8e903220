// The firewall: one static nftables table for all sandboxes, so that a create adds no rule. Rules match interfaces by prefix and never
// affect other traffic of the host. Only a sandbox whose caller restricted it has a chain of its own, which a map finds by the interface.
//
//   sandbox -> host              only replies in connections that the host opened, except a configured proxy
//   sandbox -> sandbox           no
//   sandbox -> private ranges    no (other hosts of the site, cloud metadata), except the configured resolvers, proxies and networks
//   sandbox -> IPv6              as above: only global addresses, and nothing at all when the node has no IPv6 for sandboxes
//   sandbox -> public internet   yes, with the address of the host, except what the chain of its interface in `restricted` closes
//   others  -> sandbox           no; only root on the host opens connections to sandbox addresses
//   sandbox -> egress proxy      only what its redirection sends there; nobody else may connect to the proxy
//
// Each may have a number of connections at once, so that nobody fills the host's table of connections, which all share.
//
// What it refuses and lets out is counted for each interface. Of both, a limited number for each interface is reported: refused packets to a group
// of the kernel's log, connections as events of connection tracking. So a sandbox that floods has no influence on what others leave.

import { MAX_INTERFACES, refusalChains, trafficChains, trafficSets } from "./firewall-log.ts";
import type { NetworkNames } from "./names.ts";

export interface ReasonedRange {
  readonly range: string;
  readonly why: string;
}

/** Ranges that no sandbox can reach, whatever a caller allows. */
export const CLOSED_RANGES: readonly ReasonedRange[] = [
  { range: "0.0.0.0/8", why: "this network (RFC 1122)" },
  { range: "10.0.0.0/8", why: "private (RFC 1918); other sandboxes" },
  { range: "100.64.0.0/10", why: "carrier and overlay networks (RFC 6598)" },
  { range: "127.0.0.0/8", why: "loopback" },
  { range: "169.254.0.0/16", why: "link-local; cloud metadata services" },
  { range: "172.16.0.0/12", why: "private (RFC 1918)" },
  { range: "192.0.0.0/24", why: "protocol assignments (RFC 6890)" },
  { range: "192.168.0.0/16", why: "private (RFC 1918)" },
  { range: "198.18.0.0/15", why: "benchmarks and site networks (RFC 2544)" },
  { range: "224.0.0.0/3", why: "multicast, reserved, broadcast" },
];

/** What every sandbox may reach over IPv6: the global addresses, but for those that lead to others of IPv4. Everything else is closed. */
const GLOBAL_IPV6 = "2000::/3";
const CLOSED_GLOBAL_IPV6: readonly ReasonedRange[] = [
  { range: "2001::/23", why: "protocol assignments, such as Teredo (RFC 2928)" },
  { range: "2002::/16", why: "6to4 (RFC 3056)" },
];
/** Everything of IPv6. */
export const ALL_IPV6 = "::/0";

/** A listener that sandboxes with internet access may reach, wherever it is. */
export interface ProxyAddress {
  readonly address: string;
  readonly port: number;
}

export interface FirewallOptions {
  readonly names: NetworkNames;
  /** Prefix of the addresses of sandboxes. */
  readonly pool: string;
  /** Prefix of their addresses of IPv6. Undefined: they have none, and nothing of it passes. */
  readonly ipv6: string | undefined;
  /** Name servers. They may have private addresses. */
  readonly resolvers: readonly string[];
  /** Addresses and prefixes that are open although their range is closed. Other sandboxes and the host stay closed. */
  readonly privateNetworks?: readonly string[];
  /** Proxies of the site. They may have private addresses, or one of the host's own. */
  readonly proxies: readonly ProxyAddress[];
  /** The restrictions of running sandboxes. */
  readonly restricted: readonly Restriction[];
  /** Addresses of running sandboxes, which may be from an earlier pool. */
  readonly adopted: readonly string[];
  /** Most connections of one sandbox to the outside at once. */
  readonly maxConnections: number;
  /** Where the node's egress proxy listens, on every address of the host. */
  readonly egress: EgressPorts;
}

export interface EgressPorts {
  /** TCP. */
  readonly proxy: number;
  /** DNS over UDP and TCP. */
  readonly dns: number;
}

/** The connections of a sandbox that go to the egress proxy instead of their destination. */
export interface Redirection {
  /** Ports of TCP connections. */
  readonly tcp: "all" | readonly number[];
  /** Port 53 of UDP and TCP goes to the proxy's name server. */
  readonly dns: boolean;
  /** Destinations to which connections go directly. The form is that of `closed`. */
  readonly except: readonly string[];
  /** Ports of TCP connections that go to the proxy whatever `except` has. */
  readonly always?: readonly number[];
}

/**
 * What one sandbox may not reach in addition to what no sandbox can reach, and which of its connections the egress proxy decides. Addresses
 * and ranges have the form "192.0.2.1" or "192.0.2.1-192.0.2.9", and do not overlap.
 */
export interface Restriction {
  readonly hostInterface: string;
  readonly closed: "everything" | readonly string[];
  readonly ipv6?: Ipv6Restriction;
  readonly redirected?: Redirection;
  /** Most connections to the outside at once. Default: as many as every sandbox may have. */
  readonly maxConnections?: number;
  /** The addresses at which it may reach a proxy all the same. Others are closed: a proxy would lead to what is closed. */
  readonly proxiesAt: readonly string[];
}

/** Of IPv6, addresses and prefixes. No entry of a list is within another one of it. Nothing of IPv6 is redirected. */
export interface Ipv6Restriction {
  /** Open although they are in `closed`. */
  readonly open: readonly string[];
  readonly closed: readonly string[];
  /** Ports of TCP that are closed at all addresses, because the egress proxy would have to see their connections. */
  readonly closedPorts: readonly number[];
}

/** Makes the restriction of an interface this one, in one transaction, whether or not it had one before. */
export function restrictRules({ table }: NetworkNames, restriction: Restriction): string {
  const lines = CHAINS.flatMap((kind) => {
    const rules = kind.rulesOf(restriction);
    return rules.length === 0 ? removed(table, kind, restriction) : made(table, kind, { restriction, rules });
  });
  return `${lines.join("\n")}\n`;
}

/** Removes the restriction of an interface. */
export function unrestrictRules({ table }: NetworkNames, hostInterface: string): string {
  return `${CHAINS.flatMap((kind) => removed(table, kind, { hostInterface })).join("\n")}\n`;
}

function made(table: string, { map, nameOf }: ChainKind, { restriction, rules }: { restriction: Restriction; rules: readonly string[] }) {
  const chain = `inet ${table} ${nameOf(restriction)}`;
  return [
    `add chain ${chain}`,
    `flush chain ${chain}`,
    ...rules.map((rule) => `add rule ${chain} ${rule}`),
    `add element inet ${table} ${map} { ${elementOf(restriction, nameOf)} }`,
  ];
}

/** What it removes is added first, because nft fails for what does not exist. */
function removed(table: string, { map, nameOf }: ChainKind, of: OfInterface): string[] {
  const chain = `inet ${table} ${nameOf(of)}`;
  return [
    `add chain ${chain}`,
    `add element inet ${table} ${map} { ${elementOf(of, nameOf)} }`,
    `delete element inet ${table} ${map} { "${of.hostInterface}" }`,
    `flush chain ${chain}`,
    `delete chain ${chain}`,
  ];
}

type OfInterface = Pick<Restriction, "hostInterface">;

interface ChainKind {
  /** Leads from the interface to its chain. */
  readonly map: string;
  nameOf(of: OfInterface): string;
  rulesOf(restriction: Restriction): string[];
}

/** The chains that a restricted interface may have. It has no empty ones: nft takes longer for each change the more there are. */
const CHAINS: readonly ChainKind[] = [
  {
    map: "restricted",
    nameOf: ({ hostInterface }: OfInterface) => `only_${hostInterface}`,
    rulesOf: restrictionRules,
  },
  {
    map: "redirected",
    nameOf: ({ hostInterface }: OfInterface) => `via_${hostInterface}`,
    rulesOf: redirectionRules,
  },
  {
    map: "limited",
    nameOf: ({ hostInterface }: OfInterface) => `max_${hostInterface}`,
    rulesOf: limitRules,
  },
];

function elementOf(restriction: OfInterface, nameOf: (of: OfInterface) => string): string {
  return `"${restriction.hostInterface}" : jump ${nameOf(restriction)}`;
}

function redirectionRules({ redirected }: Restriction): string[] {
  if (!redirected) return [];
  const { tcp, dns, except, always = [] } = redirected;
  const ports = tcp === "all" ? "meta l4proto tcp" : `tcp dport { ${tcp.join(", ")} }`;
  return [
    "meta nfproto ipv6 return",
    ...(always.length > 0 ? [`tcp dport { ${always.join(", ")} } goto to_proxy`] : []),
    ...(except.length > 0 ? [`ip daddr { ${except.join(", ")} } return`] : []),
    ...(dns ? ["meta l4proto { tcp, udp } th dport 53 goto to_resolver"] : []),
    ...(tcp.length > 0 ? [`${ports} goto to_proxy`] : []),
  ];
}

/** A limit of its own may also be higher than that of every sandbox. */
function limitRules({ maxConnections }: Restriction): string[] {
  return maxConnections === undefined ? [] : [`ct count over ${maxConnections} goto too_many`, "accept"];
}

/** They match what the sandbox sends, and what it receives in connections that it opened. */
function restrictionRules({ hostInterface, closed, ipv6, proxiesAt }: Restriction): string[] {
  const [sent, received] = [`iifname "${hostInterface}"`, `oifname "${hostInterface}"`];
  const ofIpv6 = ipv6 ? ipv6Rules(ipv6, { sent, received }) : [];
  if (closed === "everything") return [...ofIpv6, `${sent} goto cut`, `${received} goto cut`];
  if (closed.length === 0) return ofIpv6;
  const ranges = `{ ${closed.join(", ")} }`;
  const elsewhere = proxiesAt.length > 0 ? `ip daddr != { ${proxiesAt.join(", ")} } ` : "";
  return [
    ...ofIpv6,
    `${sent} ip daddr ${ranges} goto cut`,
    `${received} ip saddr ${ranges} goto cut`,
    `${sent} ${elsewhere}ip daddr . tcp dport @proxies goto cut`,
  ];
}

function ipv6Rules({ open, closed, closedPorts }: Ipv6Restriction, { sent, received }: { sent: string; received: string }): string[] {
  const each = (addresses: readonly string[], verdict: string) => {
    if (addresses.length === 0) return [];
    const matches = (field: string) => (addresses.includes(ALL_IPV6) ? "meta nfproto ipv6" : `ip6 ${field} { ${addresses.join(", ")} }`);
    return [`${sent} ${matches("daddr")} ${verdict}`, `${received} ${matches("saddr")} ${verdict}`];
  };
  const ports = closedPorts.length > 0 ? [`${sent} meta nfproto ipv6 tcp dport { ${closedPorts.join(", ")} } goto cut`] : [];
  return [...ports, ...each(open, "return"), ...each(closed, "goto cut")];
}

/** The elements of the set of proxies, as nft writes them. */
export function proxyElements(proxies: readonly ProxyAddress[]): string {
  return proxies.map(({ address, port }) => `${address} . ${port}`).join(", ");
}

export function firewallRules({
  names,
  pool,
  ipv6,
  resolvers,
  privateNetworks = [],
  proxies,
  restricted,
  adopted,
  maxConnections,
  egress,
}: FirewallOptions): string {
  const sandbox = `"${names.interfacePrefix}*"`;
  const closed = CLOSED_RANGES.map(({ range }) => range).join(", ");
  const resolverRules = resolvers.flatMap((address) =>
    ["udp", "tcp"].map((protocol) => `    ip daddr ${address} ${protocol} dport 53 accept`),
  );
  return `
table inet ${names.table}
delete table inet ${names.table}
table inet ${names.table} {
  set proxies {
    type ipv4_addr . inet_service
${proxies.length > 0 ? `    elements = { ${proxyElements(proxies)} }\n` : ""}  }
${trafficSets()}${refusalChains(names)}  chain cut {
    iifname ${sandbox} jump note_address_closed
    meta l4proto tcp ct state established reject with tcp reset
    meta nfproto ipv6 meta l4proto tcp reject with tcp reset
    drop
  }
  chain neighbour_or_spoofed {
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept
    ip6 saddr { ::, fe80::/10 } drop
    ip6 daddr ff00::/8 drop
    fib saddr . iif oif missing goto refuse_spoofed_address
  }
  chain too_many {
    jump note_too_many_connections
    meta l4proto tcp reject with tcp reset
    drop
  }
  chain to_proxy {
    meta l4proto tcp redirect to :${egress.proxy}
  }
  chain to_resolver {
    meta l4proto { tcp, udp } redirect to :${egress.dns}
  }
${CHAINS.map((kind) => chainsAndMap(kind, restricted)).join("")}  chain redirected_here {
    type nat hook prerouting priority dstnat; policy accept;
    iifname vmap @redirected
  }
  set connections {
    type ifname; size ${MAX_INTERFACES}; flags dynamic;
  }
  chain counted {
    type filter hook prerouting priority filter; policy accept;
    iifname != ${sandbox} accept
    ct state != new accept
    iifname vmap @limited
    add @connections { iifname ct count over ${maxConnections} } goto too_many
  }
  chain spoofed {
    type filter hook prerouting priority raw; policy accept;
    iifname ${sandbox} meta nfproto ipv6 goto ${ipv6 === undefined ? "refuse_no_ipv6" : "neighbour_or_spoofed"}
    iifname ${sandbox} fib saddr . iif oif missing goto refuse_spoofed_address
  }
  chain to_host {
    type filter hook input priority filter; policy accept;
    iifname != ${sandbox} ct state new meta l4proto { tcp, udp } th dport { ${egress.proxy}, ${egress.dns} } drop
    iifname != ${sandbox} accept
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    ct status dnat update @sent { iifname counter }
    ct status dnat tcp dport { ${egress.proxy}, ${egress.dns} } accept
    ct status dnat udp dport ${egress.dns} accept
    ct direction original iifname vmap @restricted
    ct state established,related accept
    ip daddr . tcp dport @proxies accept
    goto refuse_own_network
  }
  chain from_host {
    type filter hook output priority filter; policy accept;
    oifname ${sandbox} ct state new meta skuid != 0 reject
  }
  chain through_host {
    type filter hook forward priority filter; policy accept;
    iifname != ${sandbox} oifname != ${sandbox} accept
    iifname ${sandbox} oifname ${sandbox} goto refuse_own_network
    iifname vmap @restricted
    oifname vmap @restricted
    oifname ${sandbox} ct state established,related accept
    oifname ${sandbox} drop
    ct state established,related accept
${resolverRules.join("\n")}
    ip daddr . tcp dport @proxies accept
${privateNetworks.map((network) => `    ip daddr ${network} accept\n`).join("")}    ip daddr { ${closed} } goto refuse_own_network
    ip6 daddr != ${GLOBAL_IPV6} goto refuse_own_network
    ip6 daddr { ${CLOSED_GLOBAL_IPV6.map(({ range }) => range).join(", ")} } goto refuse_own_network
    accept
  }
${trafficChains(sandbox)}  chain behind_host {
    type nat hook postrouting priority srcnat; policy accept;
${[pool, ...adopted].map((from) => `    ip saddr ${from} oifname != ${sandbox} masquerade`).join("\n")}
${ipv6 === undefined ? "" : `    ip6 saddr ${ipv6} oifname != ${sandbox} masquerade\n`}  }
}
`;
}

function chainsAndMap({ map, nameOf, rulesOf }: ChainKind, restricted: readonly Restriction[]): string {
  const filled = restricted.map((one) => ({ one, rules: rulesOf(one) })).filter(({ rules }) => rules.length > 0);
  const chains = filled.map(({ one, rules }) => `  chain ${nameOf(one)} {\n${rules.map((rule) => `    ${rule}\n`).join("")}  }\n`);
  const elements = filled.map(({ one }) => elementOf(one, nameOf)).join(", ");
  return `${chains.join("")}  map ${map} {
    type ifname : verdict
${elements === "" ? "" : `    elements = { ${elements} }\n`}  }
`;
}

// The firewall: one static nftables table for all sandboxes, so that a create adds no rule. Rules match interfaces by prefix and never
// affect other traffic of the host. Only a sandbox whose caller restricted it has a chain of its own, which a map finds by the interface.
//
//   sandbox -> host              only replies in connections that the host opened, except a configured proxy
//   sandbox -> sandbox           no
//   sandbox -> private ranges    no (other hosts of the site, cloud metadata), except the configured resolvers, proxies and networks
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

/** A listener that sandboxes with internet access may reach, wherever it is. */
export interface ProxyAddress {
  readonly address: string;
  readonly port: number;
}

export interface FirewallOptions {
  readonly names: NetworkNames;
  /** Prefix of the addresses of sandboxes. */
  readonly pool: string;
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
  readonly redirected?: Redirection;
  /** Most connections to the outside at once. Default: as many as every sandbox may have. */
  readonly maxConnections?: number;
  /** The addresses at which it may reach a proxy all the same. Others are closed: a proxy would lead to what is closed. */
  readonly proxiesAt: readonly string[];
}

/** Makes the restriction of an interface this one, in one transaction, whether or not it had one before. */
export function restrictRules({ table }: NetworkNames, restriction: Restriction): string {
  const lines = CHAINS.flatMap(({ map, nameOf, rulesOf }) => {
    const chain = `inet ${table} ${nameOf(restriction)}`;
    return [
      `add chain ${chain}`,
      `flush chain ${chain}`,
      ...rulesOf(restriction).map((rule) => `add rule ${chain} ${rule}`),
      `add element inet ${table} ${map} { ${elementOf(restriction, nameOf)} }`,
    ];
  });
  return `${lines.join("\n")}\n`;
}

/** Removes the restriction of an interface. What it removes is added first, because nft fails for what does not exist. */
export function unrestrictRules({ table }: NetworkNames, hostInterface: string): string {
  const lines = CHAINS.flatMap(({ map, nameOf }) => {
    const chain = `inet ${table} ${nameOf({ hostInterface })}`;
    return [
      `add chain ${chain}`,
      `add element inet ${table} ${map} { ${elementOf({ hostInterface }, nameOf)} }`,
      `delete element inet ${table} ${map} { "${hostInterface}" }`,
      `flush chain ${chain}`,
      `delete chain ${chain}`,
    ];
  });
  return `${lines.join("\n")}\n`;
}

type OfInterface = Pick<Restriction, "hostInterface">;

/** The chains that a restricted interface has, and the maps that lead to them. */
const CHAINS = [
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
] as const;

function elementOf(restriction: OfInterface, nameOf: (of: OfInterface) => string): string {
  return `"${restriction.hostInterface}" : jump ${nameOf(restriction)}`;
}

function redirectionRules({ redirected }: Restriction): string[] {
  if (!redirected) return [];
  const { tcp, dns, except, always = [] } = redirected;
  const ports = tcp === "all" ? "meta l4proto tcp" : `tcp dport { ${tcp.join(", ")} }`;
  return [
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
function restrictionRules({ hostInterface, closed, proxiesAt }: Restriction): string[] {
  const [sent, received] = [`iifname "${hostInterface}"`, `oifname "${hostInterface}"`];
  if (closed === "everything") return [`${sent} goto cut`, `${received} goto cut`];
  if (closed.length === 0) return [];
  const ranges = `{ ${closed.join(", ")} }`;
  const elsewhere = proxiesAt.length > 0 ? `ip daddr != { ${proxiesAt.join(", ")} } ` : "";
  return [
    `${sent} ip daddr ${ranges} goto cut`,
    `${received} ip saddr ${ranges} goto cut`,
    `${sent} ${elsewhere}ip daddr . tcp dport @proxies goto cut`,
  ];
}

/** The elements of the set of proxies, as nft writes them. */
export function proxyElements(proxies: readonly ProxyAddress[]): string {
  return proxies.map(({ address, port }) => `${address} . ${port}`).join(", ");
}

export function firewallRules({
  names,
  pool,
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
    drop
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
    iifname ${sandbox} meta nfproto ipv6 goto refuse_no_ipv6
    iifname ${sandbox} fib saddr . iif oif missing goto refuse_spoofed_address
  }
  chain to_host {
    type filter hook input priority filter; policy accept;
    iifname != ${sandbox} ct state new meta l4proto { tcp, udp } th dport { ${egress.proxy}, ${egress.dns} } drop
    iifname != ${sandbox} accept
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
    meta nfproto ipv6 goto refuse_no_ipv6
    accept
  }
${trafficChains(sandbox)}  chain behind_host {
    type nat hook postrouting priority srcnat; policy accept;
${[pool, ...adopted].map((from) => `    ip saddr ${from} oifname != ${sandbox} masquerade`).join("\n")}
  }
}
`;
}

function chainsAndMap({ map, nameOf, rulesOf }: (typeof CHAINS)[number], restricted: readonly Restriction[]): string {
  const chains = restricted.map((one) => {
    const rules = rulesOf(one).map((rule) => `    ${rule}\n`);
    return `  chain ${nameOf(one)} {\n${rules.join("")}  }\n`;
  });
  const elements = restricted.map((one) => elementOf(one, nameOf)).join(", ");
  return `${chains.join("")}  map ${map} {
    type ifname : verdict
${elements === "" ? "" : `    elements = { ${elements} }\n`}  }
`;
}

// The firewall: one static nftables table for all sandboxes, so that a create adds no rule. Rules match interfaces by prefix and never
// affect other traffic of the host. Only a sandbox whose caller restricted it has a chain of its own, which a map finds by the interface.
//
//   sandbox -> host              only replies in connections that the host opened, except a configured proxy
//   sandbox -> sandbox           no
//   sandbox -> private ranges    no (other hosts of the site, cloud metadata), except the configured resolvers and proxies
//   sandbox -> public internet   yes, with the address of the host, except what the chain of its interface in `restricted` closes
//   others  -> sandbox           no; only root on the host opens connections to sandbox addresses

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
  /** Proxies of the site. They may have private addresses, or one of the host's own. */
  readonly proxies: readonly ProxyAddress[];
  /** The restrictions of running sandboxes. */
  readonly restricted: readonly Restriction[];
  /** Addresses of running sandboxes, which may be from an earlier pool. */
  readonly adopted: readonly string[];
}

/**
 * What one sandbox may not reach in addition to what no sandbox can reach. Addresses and ranges have the form "192.0.2.1" or
 * "192.0.2.1-192.0.2.9", and do not overlap.
 */
export interface Restriction {
  readonly hostInterface: string;
  readonly closed: "everything" | readonly string[];
  /** The addresses at which it may reach a proxy all the same. Others are closed: a proxy would lead to what is closed. */
  readonly proxiesAt: readonly string[];
}

/** Makes the restriction of an interface this one, in one transaction, whether or not it had one before. */
export function restrictRules({ table }: NetworkNames, restriction: Restriction): string {
  const chain = `inet ${table} ${chainOf(restriction)}`;
  return [
    `add chain ${chain}`,
    `flush chain ${chain}`,
    ...restrictionRules(restriction).map((rule) => `add rule ${chain} ${rule}`),
    `add element inet ${table} restricted { ${restrictedElement(restriction)} }`,
    "",
  ].join("\n");
}

/** Removes the restriction of an interface. What it removes is added first, because nft fails for what does not exist. */
export function unrestrictRules({ table }: NetworkNames, hostInterface: string): string {
  const chain = `inet ${table} ${chainOf({ hostInterface })}`;
  return [
    `add chain ${chain}`,
    `add element inet ${table} restricted { ${restrictedElement({ hostInterface })} }`,
    `delete element inet ${table} restricted { "${hostInterface}" }`,
    `flush chain ${chain}`,
    `delete chain ${chain}`,
    "",
  ].join("\n");
}

function chainOf({ hostInterface }: Pick<Restriction, "hostInterface">): string {
  return `only_${hostInterface}`;
}

function restrictedElement(restriction: Pick<Restriction, "hostInterface">): string {
  return `"${restriction.hostInterface}" : jump ${chainOf(restriction)}`;
}

/** They match what the sandbox sends, and what it receives in connections that it opened. */
function restrictionRules({ hostInterface, closed, proxiesAt }: Restriction): string[] {
  const [sent, received] = [`iifname "${hostInterface}"`, `oifname "${hostInterface}"`];
  if (closed === "everything") return [`${sent} goto cut`, `${received} goto cut`];
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

export function firewallRules({ names, pool, resolvers, proxies, restricted, adopted }: FirewallOptions): string {
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
  chain cut {
    meta l4proto tcp ct state established reject with tcp reset
    drop
  }
${restricted.map(restrictionChain).join("")}  map restricted {
    type ifname : verdict
${restricted.length > 0 ? `    elements = { ${restricted.map(restrictedElement).join(", ")} }\n` : ""}  }
  chain spoofed {
    type filter hook prerouting priority raw; policy accept;
    iifname ${sandbox} meta nfproto ipv6 drop
    iifname ${sandbox} fib saddr . iif oif missing drop
  }
  chain to_host {
    type filter hook input priority filter; policy accept;
    iifname != ${sandbox} accept
    ct direction original iifname vmap @restricted
    ct state established,related accept
    ip daddr . tcp dport @proxies accept
    drop
  }
  chain from_host {
    type filter hook output priority filter; policy accept;
    oifname ${sandbox} ct state new meta skuid != 0 reject
  }
  chain through_host {
    type filter hook forward priority filter; policy accept;
    iifname != ${sandbox} oifname != ${sandbox} accept
    iifname ${sandbox} oifname ${sandbox} drop
    iifname vmap @restricted
    oifname vmap @restricted
    oifname ${sandbox} ct state established,related accept
    oifname ${sandbox} drop
    ct state established,related accept
${resolverRules.join("\n")}
    ip daddr . tcp dport @proxies accept
    ip daddr { ${closed} } drop
    meta nfproto ipv6 drop
    accept
  }
  chain behind_host {
    type nat hook postrouting priority srcnat; policy accept;
${[pool, ...adopted].map((from) => `    ip saddr ${from} oifname != ${sandbox} masquerade`).join("\n")}
  }
}
`;
}

function restrictionChain(restriction: Restriction): string {
  return `  chain ${chainOf(restriction)} {\n${restrictionRules(restriction)
    .map((rule) => `    ${rule}\n`)
    .join("")}  }\n`;
}

// The firewall: one static nftables table for all sandboxes, so that a create adds no rule. Rules match interfaces by prefix and never
// affect other traffic of the host.
//
//   sandbox -> host              only replies in connections that the host opened, except a configured proxy
//   sandbox -> sandbox           no
//   sandbox -> private ranges    no (other hosts of the site, cloud metadata), except the configured resolvers and proxies
//   sandbox -> public internet   yes, with the address of the host; no for interfaces in `no_internet`
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
  /** Host-side interfaces of running sandboxes without internet access. */
  readonly blocked: readonly string[];
  /** Addresses of running sandboxes, which may be from an earlier pool. */
  readonly adopted: readonly string[];
}

/** The elements of the set of proxies, as nft writes them. */
export function proxyElements(proxies: readonly ProxyAddress[]): string {
  return proxies.map(({ address, port }) => `${address} . ${port}`).join(", ");
}

export function firewallRules({ names, pool, resolvers, proxies, blocked, adopted }: FirewallOptions): string {
  const sandbox = `"${names.interfacePrefix}*"`;
  const closed = CLOSED_RANGES.map(({ range }) => range).join(", ");
  const resolverRules = resolvers.flatMap((address) =>
    ["udp", "tcp"].map((protocol) => `    ip daddr ${address} ${protocol} dport 53 accept`),
  );
  return `
table inet ${names.table}
delete table inet ${names.table}
table inet ${names.table} {
  set no_internet {
    type ifname
${blocked.length > 0 ? `    elements = { ${blocked.map((name) => `"${name}"`).join(", ")} }\n` : ""}  }
  set proxies {
    type ipv4_addr . inet_service
${proxies.length > 0 ? `    elements = { ${proxyElements(proxies)} }\n` : ""}  }
  chain spoofed {
    type filter hook prerouting priority raw; policy accept;
    iifname ${sandbox} meta nfproto ipv6 drop
    iifname ${sandbox} fib saddr . iif oif missing drop
  }
  chain to_host {
    type filter hook input priority filter; policy accept;
    iifname != ${sandbox} accept
    ct state established,related accept
    iifname @no_internet drop
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
    oifname ${sandbox} ct state established,related accept
    oifname ${sandbox} drop
    iifname @no_internet drop
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

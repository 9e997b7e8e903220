// What the firewall counts and reports of each interface. All sets have the interface as their key, which no sandbox chooses.

import type { NetworkNames } from "./names.ts";

/** Why the firewall refuses a packet. They are part of the API: see docs/network.md. */
export const REFUSALS = ["address_closed", "no_ipv6", "own_network", "spoofed_address", "too_many_connections"] as const;

/** Sets of counters, by interface. `opened` has connections that go out directly, `refused` has packets. */
export const COUNTER_SETS = ["sent", "received", "opened", "refused"] as const;

export type CounterSet = (typeof COUNTER_SETS)[number];

/** Reported of each interface: afterwards the counters tell how many there were. */
const REFUSED_RATE = "limit rate 10/second burst 100 packets";
const OPENED_RATE = "limit rate 10/second burst 300 packets";
/** The headers of a packet: all of IPv6, and IPv4 with options. */
const SNAPPED_BYTES = 96;
export const MAX_INTERFACES = 65_535;

export function trafficSets(): string {
  return [...COUNTER_SETS, "reported_refused", "reported_opened"]
    .map((name) => `  set ${name} {\n    type ifname; size ${MAX_INTERFACES}; flags dynamic;\n  }\n`)
    .join("");
}

/** `note_*` counts and reports, `refuse_*` also drops. */
export function refusalChains({ logGroup }: NetworkNames): string {
  return REFUSALS.map(
    (reason) => `  chain note_${reason} {
    update @refused { iifname counter }
    update @reported_refused { iifname ${REFUSED_RATE} } log prefix "${reason}" group ${logGroup} snaplen ${SNAPPED_BYTES} queue-threshold 1
  }
  chain refuse_${reason} {
    jump note_${reason}
    drop
  }
`,
  ).join("");
}

/** Of what leaves the host, and of the answers. A rule that reads the bytes of a connection makes the kernel count them. */
export function trafficChains(sandbox: string): string {
  return `  chain opened_now {
    update @opened { iifname counter }
    ct original bytes 0 continue
    update @reported_opened { iifname ${OPENED_RATE} } ct event set new,destroy return
    ct event set 0x0
  }
  chain passing {
    type filter hook postrouting priority filter; policy accept;
    iifname ${sandbox} update @sent { iifname counter }
    iifname ${sandbox} ct state new jump opened_now
    oifname ${sandbox} iifname != ${sandbox} update @received { oifname counter }
    oifname ${sandbox} ct status dnat update @received { oifname counter }
  }
`;
}

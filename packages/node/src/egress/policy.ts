// What one sandbox may reach through the egress proxy. The firewall decides everything that is not redirected to it.

import { type Ipv4Range, isInRanges } from "@skerry/wire";
import type { OutgoingProxy } from "@skerry/wire/node";
import type { NameRules } from "./names.ts";

export interface EgressPolicy {
  /** Names that the sandbox may reach, whatever their addresses. */
  readonly names: NameRules;
  /** Addresses that it may not reach otherwise: sorted, without overlaps. */
  readonly closed: readonly Ipv4Range[];
  /** Whether every address is closed that is not allowed. */
  readonly isAllDenied: boolean;
  /** Whether TLS connections may have to be read. */
  readonly hasHeaderRules: boolean;
  /** Through which everything goes. */
  readonly proxy: OutgoingProxy | undefined;
}

export type Verdict =
  /** `rule`: the entry that matched, or "" when nothing denies the address. */
  { readonly isAllowed: true; readonly rule: string } | { readonly isAllowed: false; readonly reason: Refusal };

/** Why something was refused. They are part of the API: see docs/network.md. */
export type Refusal =
  | "address_closed"
  | "bad_request"
  | "encrypted_client_hello"
  | "header_rule"
  | "name_not_allowed"
  | "no_name"
  | "not_decidable"
  | "own_network"
  | "proxy_failed"
  | "too_many_connections"
  | "unknown_name"
  | "unreachable";

/** Judges a connection by the name that its client asked for. */
export function judgeName(policy: EgressPolicy, name: string): Verdict {
  const rule = policy.names.find(name);
  return rule === undefined ? { isAllowed: false, reason: "name_not_allowed" } : { isAllowed: true, rule };
}

/** Judges a connection to an address. "" is an address that is not known, which is open when nothing is closed. */
export function judgeAddress({ closed }: EgressPolicy, address: string): Verdict {
  return closed.length > 0 && isInRanges(closed, address) ? { isAllowed: false, reason: "address_closed" } : { isAllowed: true, rule: "" };
}

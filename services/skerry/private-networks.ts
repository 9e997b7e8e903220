import { parseIpv4Range } from "@skerry/wire";

/** Ranges of which an operator may open parts. Never the host's loopback, link-local addresses with their metadata services, or multicast. */
const OPENABLE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15"].flatMap(
  (range) => parseIpv4Range(range) ?? [],
);

/** Whether an address or prefix is a part of a private network, which the operator may open to sandboxes. */
export function isPrivateNetwork(text: string): boolean {
  const range = parseIpv4Range(text);
  return range !== undefined && OPENABLE.some(({ first, last }) => first <= range.first && range.last <= last);
}

// The entries of a sandbox's rules for outgoing traffic.

import { isIP, isIPv6 } from "node:net";
import { parseIpv4Range } from "@skerry/wire";
import { invalid, validationError } from "../../errors.ts";

/** Each sandbox's rules are in the kernel, and in every message about the sandbox. */
const MAX_ENTRIES = 1_000;
const MAX_NAME_SERVERS = 10;
const EVERYTHING = "0.0.0.0/0";
const LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^(\\*\\.)?(${LABEL}\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?\\.?$`, "i");

/** Throws the error for the caller when an entry is malformed. */
export function assertOutgoing({ allowed, denied }: { readonly allowed: readonly string[]; readonly denied: readonly string[] }): void {
  if (Math.max(allowed.length, denied.length) > MAX_ENTRIES) {
    throw validationError(`body/network: a list of addresses must not have more than ${MAX_ENTRIES} entries`);
  }
  for (const entry of denied) if (!isDeniable(entry)) throw invalid(`invalid denied CIDR ${shortened(entry)}`);
  for (const entry of allowed) if (!isAddress(entry) && !isName(entry)) throw invalid(`invalid allowed address ${shortened(entry)}`);
  if (allowed.some((entry) => !isAddress(entry)) && !denied.includes(EVERYTHING)) {
    throw invalid("When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.");
  }
}

/** Throws the error for the caller when one of the name servers is no IPv4 address. */
export function assertNameServers(servers: readonly string[]): void {
  if (servers.length > MAX_NAME_SERVERS) throw validationError(`body/network: there may be at most ${MAX_NAME_SERVERS} DNS servers`);
  const wrong = servers.find((server) => isIP(server) !== 4 || server === "0.0.0.0");
  if (wrong !== undefined) throw invalid(`invalid DNS server ${shortened(wrong)}: it must be an IPv4 address`);
}

/** An address that means "any" on its own is a mistake: `0.0.0.0/0` was meant. */
function isDeniable(entry: string): boolean {
  return isAddress(entry) && entry !== "0.0.0.0" && entry !== "::";
}

function isAddress(entry: string): boolean {
  if (parseIpv4Range(entry)) return true;
  const [address = "", length, ...rest] = entry.split("/");
  const isLength = length === undefined || (/^(0|[1-9]\d{0,2})$/.test(length) && Number(length) <= 128);
  return isIPv6(address) && !address.includes("%") && isLength && rest.length === 0;
}

function isName(entry: string): boolean {
  return entry === "*" || (NAME.test(entry) && entry.length <= 253);
}

function shortened(entry: string): string {
  return entry.slice(0, 100);
}

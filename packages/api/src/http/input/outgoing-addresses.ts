// The entries of a sandbox's rules for outgoing traffic.

import { isIPv6 } from "node:net";
import { parseIpv4Range } from "@skerry/wire";
import { invalid, notBuilt, validationError } from "../../errors.ts";

/** Each sandbox's rules are in the kernel, and in every message about the sandbox. */
const MAX_ENTRIES = 1_000;
const EVERYTHING = "0.0.0.0/0";
const LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^(\\*\\.)?(${LABEL}\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?\\.?$`, "i");

/** Throws the error for the caller when an entry is malformed, or asks for what is not built. */
export function assertOutgoing({ allowed, denied }: { readonly allowed: readonly string[]; readonly denied: readonly string[] }): void {
  if (Math.max(allowed.length, denied.length) > MAX_ENTRIES) {
    throw validationError(`body/network: a list of addresses must not have more than ${MAX_ENTRIES} entries`);
  }
  for (const entry of denied) if (!isDeniable(entry)) throw invalid(`invalid denied CIDR ${shortened(entry)}`);
  for (const entry of allowed) if (!isAddress(entry) && !isName(entry)) throw invalid(`invalid allowed address ${shortened(entry)}`);
  const name = allowed.find((entry) => !isAddress(entry));
  if (name !== undefined) {
    if (!denied.includes(EVERYTHING)) {
      throw invalid("When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.");
    }
    throw notBuilt(`a rule for a name (${shortened(name)}) in the list of allowed addresses`);
  }
  const ipv6 = allowed.find((entry) => entry.includes(":"));
  if (ipv6 !== undefined) throw invalid(`invalid allowed address ${ipv6}: sandboxes have no IPv6`);
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

import { writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, SubprocessError } from "@skerry/base";
import type { SlotAddresses } from "./addresses.ts";
import {
  type FirewallOptions,
  firewallRules,
  type ProxyAddress,
  proxyElements,
  type Restriction,
  restrictRules,
  unrestrictRules,
} from "./firewall.ts";
import { forwardIpv6 } from "./host-ipv6.privileged.ts";
import type { NetworkNames } from "./names.ts";

/** Replaces the table of the instance atomically, and enables packet forwarding on the host. */
export async function applyFirewall(options: FirewallOptions): Promise<void> {
  await nft(firewallRules(options));
  // Forwarding stays enabled afterwards, because other programs on the host may rely on it by then.
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  if (options.ipv6 !== undefined) forwardIpv6();
}

/** Replaces the proxies that sandboxes may reach. Open connections continue. */
export async function setProxies(names: NetworkNames, proxies: readonly ProxyAddress[]): Promise<void> {
  const set = `inet ${names.table} proxies`;
  const add = proxies.length > 0 ? `add element ${set} { ${proxyElements(proxies)} }\n` : "";
  await nft(`flush set ${set}\n${add}`);
}

export async function removeFirewall(names: NetworkNames): Promise<boolean> {
  const { stdout } = await runCommand("nft", ["list", "tables", "inet"]);
  if (!stdout.split("\n").includes(`table inet ${names.table}`)) return false;
  await nft(`delete table inet ${names.table}\n`);
  return true;
}

/** Makes the restriction of an interface this one. After a failure the former one holds. Connections that it closes are cut. */
export async function restrictTraffic(names: NetworkNames, restriction: Restriction): Promise<void> {
  await nft(restrictRules(names, restriction));
}

/** Removes the restriction of an interface, if it has one. */
export async function unrestrictTraffic(names: NetworkNames, hostInterface: string): Promise<void> {
  try {
    await nft(unrestrictRules(names, hostInterface));
  } catch (error) {
    // There is no table, which is the desired state.
    if (!(error instanceof SubprocessError) || !/No such file or directory/.test(error.stderr)) throw error;
  }
}

/**
 * Removes the connections of an ended sandbox from the kernel's tracking table. Otherwise the next sandbox with this address would receive
 * their replies, and could use them to pass the firewall, which accepts packets of known connections.
 */
export async function forgetConnections({ guest, ipv6 }: SlotAddresses): Promise<void> {
  const families = [["ipv4", guest], ...(ipv6 ? [["ipv6", ipv6.guest]] : [])] as const;
  const sides = ["--orig-src", "--orig-dst"].flatMap((side) => families.map(([family, address]) => ["--family", family, side, address]));
  await Promise.all(sides.map((about) => forgetSome(about)));
}

async function forgetSome(about: readonly string[]): Promise<void> {
  try {
    await runCommand("conntrack", ["--delete", ...about]);
  } catch (error) {
    // conntrack exits with 1 when there were no connections.
    if (!(error instanceof SubprocessError) || !/\b0 flow entries have been deleted/.test(error.stderr)) throw error;
  }
}

/** Passes the rules in a file, because nft 1.0.9 (Ubuntu 24.04) does not read from a socket, which Node.js uses as standard input. */
async function nft(rules: string): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "skerry-nft-"));
  try {
    const file = join(dir, "rules.nft");
    await writeFile(file, rules);
    await runCommand("nft", ["-f", file]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

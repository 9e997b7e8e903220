import { writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, SubprocessError } from "@skerry/base";
import { type FirewallOptions, firewallRules } from "./firewall.ts";
import type { NetworkNames } from "./names.ts";

/** Puts the instance's table in place, replacing an older one in one step, and lets this machine forward packets. */
export async function applyFirewall(options: FirewallOptions): Promise<void> {
  await nft(firewallRules(options));
  // It stays on afterwards: whoever else started to forward packets meanwhile would be cut off.
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
}

export async function removeFirewall(names: NetworkNames): Promise<boolean> {
  const { stdout } = await runCommand("nft", ["list", "tables", "inet"]);
  if (!stdout.split("\n").includes(`table inet ${names.table}`)) return false;
  await nft(`delete table inet ${names.table}\n`);
  return true;
}

export async function blockInternet(names: NetworkNames, hostInterface: string): Promise<void> {
  await nft(`add element inet ${names.table} no_internet { "${hostInterface}" }\n`);
}

export async function unblockInternet(names: NetworkNames, hostInterface: string): Promise<void> {
  try {
    await nft(`delete element inet ${names.table} no_internet { "${hostInterface}" }\n`);
  } catch (error) {
    // Not in the set, or no table any more: reached what was wanted.
    if (!(error instanceof SubprocessError) || !/No such file or directory/.test(error.stderr)) throw error;
  }
}

/**
 * Makes the kernel forget the connections of a sandbox that has ended. Otherwise whoever gets its address next would get
 * answers to what it had begun, and could go on with it past the firewall, which lets known connections through.
 */
export async function forgetConnections(guestAddress: string): Promise<void> {
  for (const side of ["--orig-src", "--orig-dst"]) {
    try {
      await runCommand("conntrack", ["--delete", side, guestAddress]);
    } catch (error) {
      // It ends with 1 when there were none.
      if (!(error instanceof SubprocessError) || !/\b0 flow entries have been deleted/.test(error.stderr)) throw error;
    }
  }
}

/** By way of a file: as standard input Node.js gives a socket, which nft 1.0.9 (Ubuntu 24.04) refuses to read. */
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

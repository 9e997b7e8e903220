import { writeFileSync } from "node:fs";
import { runCommand, SubprocessError } from "@skerry/base";
import { firewallRules } from "./firewall.ts";
import type { NetworkNames } from "./names.ts";

/** Puts the instance's table in place, replacing an older one in one step, and lets this machine forward packets. */
export async function applyFirewall(options: {
  names: NetworkNames;
  pool: string;
  resolvers: readonly string[];
  blocked: readonly string[];
}): Promise<void> {
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

async function nft(input: string): Promise<void> {
  await runCommand("nft", ["-f", "-"], { input });
}

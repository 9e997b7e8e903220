// IPv6 of the host, which has to forward that of sandboxes.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "@skerry/base";

const CONF = "/proc/sys/net/ipv6/conf";
const ROUTES = "/proc/net/ipv6_route";
/** Of a device: it takes its routes from routers unless the host forwards, or in any case. */
const UNLESS_FORWARDING = "1";
const ALWAYS = "2";
const DEFAULT_ROUTE = /^0{32} 00 (?!.* lo$)/m;

/** Whether the host's kernel has IPv6. */
export function hasIpv6(): boolean {
  return readIfThere(join(CONF, "all/disable_ipv6")) === "0";
}

/** Whether the host reaches the internet over IPv6, as far as its routes tell. */
export function hasIpv6Route(): boolean {
  return hasIpv6() && DEFAULT_ROUTE.test(readIfThere(ROUTES) ?? "");
}

/**
 * Makes the host forward IPv6. A host that forwards no longer takes its routes from routers, which would cut it off; so the devices that
 * did so before are told to go on. Stays as it is afterwards, because other programs on the host may rely on it by then.
 */
export function forwardIpv6(): void {
  if (readIfThere(join(CONF, "all/forwarding")) === "1") return;
  for (const device of readdirSync(CONF)) {
    // New devices are not meant: they may be those of containers.
    if (device === "all" || device === "default" || device === "lo") continue;
    const file = join(CONF, device, "accept_ra");
    if (readIfThere(file) === UNLESS_FORWARDING) writeFileSync(file, ALWAYS);
  }
  writeFileSync(join(CONF, "all/forwarding"), "1");
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

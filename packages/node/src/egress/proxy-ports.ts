import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";

const MAX_PORT = 65_535;
const FIRST_PORT = 1_024;
const TRIES = 100;

/**
 * Ports, in random order, that the kernel never gives to connections of other programs. So nobody has a port of a node that was killed
 * by chance, while sandboxes are still redirected to it.
 */
export function candidatePorts(): number[] {
  const [low = 32_768, high = 60_999] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").trim().split(/\s+/).map(Number);
  const above = MAX_PORT - high;
  const below = low - FIRST_PORT;
  const [first, count] = above >= below || above > 1_000 ? [high + 1, above] : [FIRST_PORT, below];
  if (count < 2) return Array.from({ length: TRIES }, () => randomInt(FIRST_PORT, MAX_PORT - 1));
  return Array.from({ length: TRIES }, () => first + randomInt(count - 1));
}

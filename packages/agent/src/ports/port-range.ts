// Chooses the ports of outgoing connections: one half of the range until a restore, the other half after it.
//
// A server that closes a connection first reserves the connection's ports for a minute (TIME-WAIT). It accepts a new connection from
// the same port only if its sequence number is higher than that of the old one. gVisor derives these numbers from a secret, which
// every restore replaces, and the minute starts anew. So after a restore half of the attempts from a recently used port would hang.
// Two restores within a minute can still meet such ports. More parts than two would leave too few ports for the clients of a server.

import { readFileSync, writeFileSync } from "node:fs";

const PATH = "/proc/sys/net/ipv4/ip_local_port_range";
/** gVisor's default range. Linux's default range is little more than half as large. */
const WHOLE = "16000 65535";
const LOWER = "16000 40767";
const UPPER = "40768 65535";

/** Leaves a range that the guest has set. Preconditions: the agent is process 1 of a sandbox. */
export function changePortRange(path = PATH): void {
  try {
    const range = readFileSync(path, "utf8").trim().split(/\s+/).join(" ");
    if (range === LOWER) writeFileSync(path, UPPER);
    else if (range === WHOLE || range === UPPER) writeFileSync(path, LOWER);
  } catch {
    // On the host's own kernel the range is read-only. There is no restore, so nothing needs to change.
  }
}

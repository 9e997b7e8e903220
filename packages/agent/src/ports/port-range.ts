// Which ports outgoing connections are made from: one half of them until a restore, the other half after it.
//
// A server that closes a connection first keeps both ends' ports for a minute (TIME-WAIT), and takes a new connection from the same
// port only when its sequence number is above the former one's. In gVisor these numbers come from a secret that every restore makes
// anew, while the minute begins anew: so after a restore half of the attempts from a port that was used just before would hang.
// Two restores within a minute can still meet such ports: more parts would leave too few for one server's clients.

import { readFileSync, writeFileSync } from "node:fs";

const PATH = "/proc/sys/net/ipv4/ip_local_port_range";
/** gVisor's own range. Linux has not many more than half of it. */
const WHOLE = "16000 65535";
const LOWER = "16000 40767";
const UPPER = "40768 65535";

/** Preconditions: this process is the first of a sandbox. A range that a guest has set stays, and a kernel that allows no change too. */
export function changePortRange(path = PATH): void {
  try {
    const range = readFileSync(path, "utf8").trim().split(/\s+/).join(" ");
    if (range === LOWER) writeFileSync(path, UPPER);
    else if (range === WHOLE || range === UPPER) writeFileSync(path, LOWER);
  } catch {
    // On the host's own kernel there is no restore, and nothing to change.
  }
}

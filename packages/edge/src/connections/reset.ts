import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { RelaySocket } from "@skerry/base";

/**
 * Closes a connection with a TCP reset if it is a TCP connection, so that the peer cannot mistake this for a clean end.
 * A truncated response must never look complete.
 */
export function reset(stream: Duplex): void {
  if (stream.destroyed) return;
  if (stream instanceof Socket || stream instanceof RelaySocket) stream.resetAndDestroy();
  else stream.destroy();
}

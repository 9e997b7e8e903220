import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { RelaySocket } from "@skerry/base";

/**
 * Breaks a connection so that the peer cannot take it for a clean end: with a TCP reset where there is one.
 * An answer that was cut off must never look complete.
 */
export function reset(stream: Duplex): void {
  if (stream.destroyed) return;
  if (stream instanceof Socket || stream instanceof RelaySocket) stream.resetAndDestroy();
  else stream.destroy();
}

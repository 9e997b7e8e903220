import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { RelaySocket } from "@skerry/base";

/** The TCP connection below each TLS connection. Only a TCP connection can be reset. */
const carriers = new WeakMap<TLSSocket, Duplex>();

/** Lets `reset` reset a TLS connection. */
export function carriedBy(socket: TLSSocket, raw: Duplex): void {
  carriers.set(socket, raw);
}

/**
 * Closes a connection with a TCP reset if it is a TCP connection, or TLS over one, so that the peer cannot mistake this for a clean
 * end. A truncated response must never look complete.
 */
export function reset(stream: Duplex): void {
  if (stream.destroyed) return;
  if (stream instanceof TLSSocket) {
    const raw = carriers.get(stream);
    if (raw) reset(raw);
    stream.destroy();
  } else if (stream instanceof Socket || stream instanceof RelaySocket) stream.resetAndDestroy();
  else stream.destroy();
}

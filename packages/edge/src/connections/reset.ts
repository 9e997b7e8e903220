import type { Http2Stream } from "node:http2";
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

/** The library exports no class of its streams. */
const isHttp2Stream = (stream: Duplex): stream is Duplex & Http2Stream => "rstCode" in stream && "sentHeaders" in stream;

/**
 * Closes a connection with a TCP reset if it is a TCP connection, or TLS over one, so that the peer cannot mistake this for a clean
 * end. A truncated response must never look complete. Of an HTTP/2 connection, only the one stream is reset.
 */
export function reset(stream: Duplex): void {
  if (stream.destroyed) return;
  if (stream instanceof TLSSocket) {
    const raw = carriers.get(stream);
    if (raw) reset(raw);
    stream.destroy();
  } else if (stream instanceof Socket || stream instanceof RelaySocket) stream.resetAndDestroy();
  // Without an error, and with `close`, the library would first end the body, and it would look complete.
  else if (isHttp2Stream(stream)) stream.destroy(new Error("the edge resets the stream"));
  else stream.destroy();
}

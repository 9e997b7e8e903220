import { Socket } from "node:net";
import { RelaySocket } from "@skerry/base";
import type { Answer, Exchange } from "./forward.ts";

/** Minimum body size. For smaller bodies the HTTP parser is as fast. */
const LARGE_BYTES = 256 * 1024;

/** Returns whether the body can bypass the HTTP parser: its length is known and large, and both connections are plain sockets. */
export function isLarge({ req, res, upstream }: Exchange, incoming: Answer["incoming"]): boolean {
  if (!(upstream instanceof RelaySocket) || !(req.socket instanceof Socket)) return false;
  // The response to a pipelined request waits for the response before it.
  if (res.socket !== req.socket) return false;
  if (req.method === "HEAD" || incoming.statusCode === 204 || incoming.statusCode === 304) return false;
  return Number(incoming.headers["content-length"]) >= LARGE_BYTES;
}

/**
 * Sends the part of the body that the parser has, then copies the remaining bytes from socket to socket. The parser never sees the
 * end of the response. This is safe because the upstream connection closes afterwards.
 */
export function pourAnswer(exchange: Exchange, answer: Answer & { finish: () => void; pipe: () => void }): void {
  const { res, req } = exchange;
  const upstream = exchange.upstream as RelaySocket;
  const { incoming, outgoing, finish, pipe } = answer;
  upstream.hold();
  // By then, the parser has emitted everything that had arrived.
  setImmediate(() => {
    if (res.destroyed) return;
    if (incoming.complete || upstream.readableLength > 0 || upstream.destroyed) {
      upstream.release();
      pipe();
      return;
    }
    const first = incoming.read() as Buffer | null;
    if (first) res.write(first);
    else res.flushHeaders();
    const rest = Number(incoming.headers["content-length"]) - (first?.length ?? 0);
    upstream
      .pour(req.socket, rest)
      .then(
        () => {
          finish();
          outgoing.destroy();
        },
        (error: Error) => outgoing.destroy(error),
      )
      .catch(exchange.onFault);
  });
}

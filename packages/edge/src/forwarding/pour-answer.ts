import { Socket } from "node:net";
import { RelaySocket } from "@skerry/base";
import type { Answer, Exchange } from "./forward.ts";

/** Below this, the ordinary way is as fast. */
const LARGE_BYTES = 256 * 1024;

/** True when the body has a known, large length and both ends are plain sockets, so that its bytes can go past the HTTP parser. */
export function isLarge({ req, res, upstream }: Exchange, incoming: Answer["incoming"]): boolean {
  if (!(upstream instanceof RelaySocket) || !(req.socket instanceof Socket)) return false;
  // A pipelined request's answer waits for the one before it.
  if (res.socket !== req.socket) return false;
  if (req.method === "HEAD" || incoming.statusCode === 204 || incoming.statusCode === 304) return false;
  return Number(incoming.headers["content-length"]) >= LARGE_BYTES;
}

/**
 * Sends what the parser has of the body, then counts the rest from socket to socket. The parser never sees the end of this
 * answer; nothing is lost by that, because the upstream connection is used once.
 */
export function pourAnswer(exchange: Exchange, answer: Answer & { finish: () => void; pipe: () => void }): void {
  const { res, req } = exchange;
  const upstream = exchange.upstream as RelaySocket;
  const { incoming, outgoing, finish, pipe } = answer;
  upstream.hold();
  // By then the parser has handed over all that had arrived.
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
